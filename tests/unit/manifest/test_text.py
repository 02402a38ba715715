import pytest

from geogenius.domain.errors import ManifestInvalid
from geogenius.manifest.text import TEXT_BYTES, read_text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "manifest: must be an object"),
        ("[]", "manifest: must be an object"),
        ("- a", "manifest: must be an object"),
        ("{", "manifest: not JSON: "),
        ('{\n"a": }', "manifest: not JSON: Expecting value at line 2 column 6"),
        ('{"a": {"b": 1, "b": 2}}', "manifest: the key 'b' is given twice"),
        ('{"a": NaN}', "manifest: NaN is not a value of JSON"),
        ('{"a":' + "[" * 100_000, "manifest: is nested too deep"),
        ('{"a": ' + "9" * 5_000 + "}", "manifest: not JSON: a number has more digits"),
        ("a: " + "9" * 5_000, "manifest: not YAML: "),
        ("a: [1", "manifest: not YAML: "),
        ("a: 1\nb:\n  c: 1\n  c: 2", "manifest: not YAML: the key 'c' is given twice in one object at line 4 column 3"),
        ("a: &x [1]\nb: *x", "manifest: not YAML: aliases are not supported; repeat the value at line 2 column 4"),
        ("? [1]\n: 2", "manifest: not YAML: a key must be a plain text"),
        ("a: !!python/object:os.system x", "manifest: not YAML: could not determine a constructor"),
        ("a: 1\n---\nb: 2", "manifest: not YAML: "),
        ("a: \x07", "manifest: not YAML: "),
        ("a: " + "[" * 5_000, "manifest: not YAML: "),
        ("a: " + "x" * TEXT_BYTES, "manifest: the text is larger than 4 MiB"),
    ],
)
def test_a_text_that_is_no_mapping_is_refused(text: str, message: str) -> None:
    with pytest.raises(ManifestInvalid) as caught:
        read_text(text)
    assert str(caught.value).startswith(message)
    assert len(str(caught.value)) < 300


def test_json_and_yaml_are_read_alike() -> None:
    assert read_text('{"a": ["2026-01-05", 1, null]}') == read_text("a: [2026-01-05, 1, null]")


def test_what_yaml_has_special_words_for_is_plain_text() -> None:
    assert read_text("<<: {a: 1}\nb: =\nc: 2026-01-05") == {"<<": {"a": 1}, "b": "=", "c": "2026-01-05"}
