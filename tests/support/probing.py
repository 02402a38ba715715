"""What a program of ours answers to probes."""

from urllib.error import HTTPError, URLError
from urllib.request import urlopen

SECONDS = 30.0


def probed(port: int, path: str) -> tuple[int, str]:
    """Status and text of an answer; 0 where nobody answers."""
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=SECONDS) as answer:
            return answer.status, answer.read().decode().strip()
    except HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode().strip()
    except (URLError, ConnectionError):
        return 0, "not there"
