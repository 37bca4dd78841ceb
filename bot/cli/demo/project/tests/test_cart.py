import unittest

from cart import Cart


class CartTest(unittest.TestCase):
    def test_subtotal(self) -> None:
        cart = Cart()
        cart.add("tea", 450, 2)
        cart.add("cup", 900)
        self.assertEqual(cart.subtotal(), 1800)

    def test_discount(self) -> None:
        cart = Cart(discount_percent=10)
        cart.add("tea", 500, 2)
        self.assertEqual(cart.total(), 900)


if __name__ == "__main__":
    unittest.main()
