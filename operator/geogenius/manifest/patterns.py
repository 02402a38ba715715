"""What names may look like, and how to say it. Checked here, so that no database error shows up later.

Each pattern means the same to Python, to pydantic and to the API server.
"""

KEY = r"^[a-z_][a-z0-9_]*$"
RELEASE = r"^[a-z0-9][a-z0-9_.-]*$"
SOURCE_KEY = r"^[A-Za-z0-9_][A-Za-z0-9_.:-]*$"
FILE_NAME = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"
SHA256 = r"^[0-9a-f]{64}$"
URL = r"^https?://[^\s/?#@]+([/?#]\S*)?$"
NOT_BLANK = r"\S"

ADVICE = {
    KEY: "must consist of lower-case letters, digits and '_', and not start with a digit",
    RELEASE: "must consist of lower-case letters, digits, '_', '.' and '-', and start with a letter or digit",
    SOURCE_KEY: "must consist of letters, digits, '_', '.', ':' and '-', and start with a letter, digit or '_'",
    FILE_NAME: "must be a plain file name of letters, digits, '_', '.' and '-'",
    SHA256: "must be 64 lower-case hexadecimal digits, as sha256sum prints them",
    URL: "must be an http or https URL without user name and password",
    NOT_BLANK: "must not be blank",
}
