from tests.cluster.images.pip import CERTIFICATES, configuration, from_environment, parsed

LISTING = """\
:env:.default-timeout='60'
global.cert='/etc/bundle.pem'
global.default-timeout='15'
global.index-url='https://packages.example/simple'
global.find-links='/wheels'
"""


def test_builds_reach_packages_the_way_the_host_does() -> None:
    assert configuration(parsed(LISTING), with_bundle=True).splitlines() == [
        "[global]",
        f"cert = {CERTIFICATES}",
        "index-url = https://packages.example/simple",
        "default-timeout = 15",
    ]


def test_variables_are_read_where_pip_itself_is_missing() -> None:
    found = from_environment({"PIP_INDEX_URL": "https://packages.example/simple", "PIP_CERT": "", "HOME": "/home"})
    assert found == {"index-url": "https://packages.example/simple"}


def test_a_host_without_settings_means_an_empty_configuration() -> None:
    assert configuration({}, with_bundle=False) == "[global]\n"
