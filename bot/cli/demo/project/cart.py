"""The cart of a small shop; amounts are in cents."""

from dataclasses import dataclass, field


@dataclass
class Line:
    """One article in the cart."""

    name: str
    price: int
    quantity: int = 1


@dataclass
class Cart:
    """What somebody is about to buy."""

    lines: list[Line] = field(default_factory=list)
    discount_percent: int = 0

    def add(self, name: str, price: int, quantity: int = 1) -> None:
        """Put an article in."""
        self.lines.append(Line(name, price, quantity))

    def subtotal(self) -> int:
        """Sum up before the discount."""
        return sum(line.price * line.quantity for line in self.lines)

    def total(self) -> int:
        """Sum up what has to be paid."""
        return self.subtotal() - self.discount_percent // 100 * self.subtotal()
