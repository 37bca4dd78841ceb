"""The environment variables that bring tools to the proxy, and to a company's certificates."""

from urllib.parse import urlsplit

_LOOPBACK = ("localhost", "127.0.0.1", "::1")

_PROXY = (
    "HTTP_PROXY",
    "http_proxy",
    "HTTPS_PROXY",
    "https_proxy",
    "ALL_PROXY",
    "all_proxy",
    # These win over what a configuration file of the machine says.
    "CARGO_HTTP_PROXY",
    "PIP_PROXY",
    "YARN_HTTPS_PROXY",
    "npm_config_https_proxy",
    "npm_config_proxy",
)
_NO_PROXY = ("NO_PROXY", "no_proxy", "npm_config_noproxy")
_CERTIFICATES = (
    "CARGO_HTTP_CAINFO",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "SSL_CERT_FILE",
    "npm_config_cafile",
)
_JAVA = ("GRADLE_OPTS", "MAVEN_OPTS")
_RESOLVER = ("aether.connector.http.useSystemProperties", "aether.transport.apache.useSystemProperties")
"""From 3.9 on, Maven's client of Apache minds the proxy of the JVM only when told to.

Source: https://maven.apache.org/resolver/configuration.html
"""


def proxy_environment(url: str, ca_bundle: str | None) -> dict[str, str]:
    """Make the variables for pip, npm, Yarn, pnpm, Cargo, Go, Maven, Gradle, curl and git.

    Args:
        url: of the proxy as the sandbox reaches it, `http://host:port` and nothing else.
        ca_bundle: file of PEM certificates as the sandbox sees it, which has to hold the public ones too, since most
            tools trust it alone; None leaves each tool its own. A JVM reads no PEM: there a company's certificates have
            to be in the machine's Java key store.
    """
    parts = urlsplit(url)
    made = dict.fromkeys(_PROXY, url) | dict.fromkeys(_NO_PROXY, ",".join(_LOOPBACK))
    if ca_bundle is not None:
        made |= dict.fromkeys(_CERTIFICATES, ca_bundle)
    properties = {
        **{f"{scheme}.proxyHost": str(parts.hostname) for scheme in ("http", "https")},
        **{f"{scheme}.proxyPort": str(parts.port) for scheme in ("http", "https")},
        **dict.fromkeys(_RESOLVER, "true"),
        # The proxy has an address of IPv4, which a JVM would spell in IPv6.
        "java.net.preferIPv4Stack": "true",
    }
    # Nothing that a shell minds: the scripts of Maven and Gradle split it, old ones evaluate it. Loopback needs no
    # word, since a JVM leaves it out by itself.
    options = " ".join(f"-D{name}={value}" for name, value in properties.items())
    return made | dict.fromkeys(_JAVA, options)
