"""Paths and URLs: credentials in a URL are found wherever they stand, and nothing else is taken for such."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalkit.io import SourceError, list_source, redacted, resolve

WITH = {
    "s3://KEY:SEKRET@bucket/p": "s3://…@bucket/p",
    "S3://SEKRET@bucket": "S3://…@bucket",
    "http://h/x?token=SEKRET": "http://h/x?…",
    "https://h/x?SEKRET": "https://h/x?…",
    "https://h/x#access_token=SEKRET": "https://h/x#…",
    "simplecache::s3://K:SEKRET@b/x": "simplecache::s3://…@b/x",
    "simplecache::s3://K:SEKRET@b/*.json": "simplecache::s3://…@b/*.json",
    "zip://inner::s3://K:SEKRET@b/x.zip": "zip://inner::s3://…@b/x.zip",
    "ftp://u:SEK/RET@h/x": "ftp://…@h/x",
    "ftp://u:SE@K/RET@h/x": "ftp://…@h/x",
    "s3://b/x?key=SEKRET": "s3://b/x?…",
    "s3://b/x?versionId=1&X-Amz-Signature=SEKRET": "s3://b/x?…",
    "az://c/x?sv=1&sig=SEKRET": "az://c/x?…",
    "s3://b/x;secret=SEKRET": "s3://b/x;…",
}
WITHOUT = [
    "s3://bucket/user@host/x",
    "s3://bucket/run?/[ab]*.json",
    "http://h:8080/x",
    "zip:///folder/a@b.zip!/x",
    "zip://inner::s3://bucket/a@b.zip",
    "file:///a:b@c",
    "zip://inner::/folder/a@b.zip",
    "zip://::runs@v1.zip",
    "/home/me@here/x?token=1",
    "me@example.org",
]


@pytest.mark.parametrize(("url", "shown"), WITH.items())
def test_credentials_are_left_out_of_any_url_of_a_text(url, shown):
    assert redacted(url) == shown
    assert (
        redacted(f"no such file: ['s3://a/x', '{url} and s3://b/y")
        == f"no such file: ['s3://a/x', '{shown} and s3://b/y"
    )


@pytest.mark.parametrize("shown", WITH.values())
def test_a_message_that_was_cleared_stays_as_it_is(shown):
    assert redacted(f"{shown}: no such file") == f"{shown}: no such file"


@pytest.mark.parametrize("text", WITHOUT)
def test_what_holds_none_stays_as_it_is(text):
    assert redacted(text) == text


@pytest.mark.parametrize("url", WITH)
@pytest.mark.parametrize("use", [resolve, list_source])
def test_a_source_with_credentials_is_refused_without_repeating_them(url, use):
    with pytest.raises(SourceError, match="credentials don't belong in a URL") as raised:
        use(url)
    assert "SEK" not in str(raised.value)


_CHARACTERS = st.characters(categories=["L", "N", "P", "S"], exclude_characters="@/?#;")
_SAFE = st.text(_CHARACTERS.filter(lambda character: character != ":"), min_size=1)


@given(st.sampled_from(["s3", "ftp", "simplecache::s3", "https"]), _SAFE, st.lists(st.text(_CHARACTERS), min_size=1))
def test_no_password_is_left_whatever_it_holds(protocol, user, password):
    secret = "/".join(password)
    assert redacted(f"{protocol}://{user}:{secret}@host/path") == f"{protocol}://…@host/path"


@given(st.text())
def test_nothing_changes_twice(text):
    assert redacted(redacted(text)) == redacted(text)
