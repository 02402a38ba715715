"""Commands about releases: `releases`, `publish`, `rollback`, `retire`, `verify`."""

from dataclasses import asdict
from typing import NoReturn
from uuid import UUID

import click

from geogenius import library
from geogenius.catalog.answers import VerifyReport
from geogenius.cli.output import output_option, print_facts, print_rows
from geogenius.domain.errors import DatabaseUnavailable, DataRefused, InvalidRequest
from geogenius.domain.run import ReleaseId
from geogenius.library import Context, Declined, PublicationUnknown, Published, Retired, RolledBack
from geogenius.wiring.importing import library_context

COLUMNS = ("release", "state", "published", "previous", "completed_at", "retired_at", "area_count", "release_id")


@click.command()
@click.argument("collection")
@output_option
def releases(collection: str, output: str) -> None:
    """Print the releases of COLLECTION, newest first."""
    with library_context() as context:
        found = library.releases(context, collection)
    print_rows(COLUMNS, [asdict(release) for release in found], output)


@click.command()
@click.argument("collection", required=False)
@click.argument("release", required=False)
@click.option("--release-id", type=click.UUID, help="In place of COLLECTION and RELEASE.")
def publish(collection: str | None, release: str | None, release_id: UUID | None) -> None:
    """Make RELEASE of COLLECTION, which must be complete, the one that readers see."""
    named = collection is not None and release is not None
    if named == (release_id is not None) or (collection is not None and release is None):
        raise click.UsageError("name either COLLECTION and RELEASE, or --release-id")
    with library_context() as context:
        wanted = ReleaseId(release_id) if release_id else _named(context, collection or "", release or "")
        match library.publish(context, wanted):
            case Published(pointer=pointer, moved=moved):
                click.echo(f"readers of {pointer.collection} {'now' if moved else 'already'} see {pointer.release}")
            case refused:
                _refuse(refused)


@click.command()
@click.argument("collection")
@click.option("--yes", is_flag=True, help="Do it; without, only what would be done is printed.")
def rollback(collection: str, *, yes: bool) -> None:
    """Make the release of COLLECTION that readers saw before the one they see."""
    with library_context() as context:
        if not yes:
            _print_rollback(context, collection)
            return
        match library.rollback(context, collection):
            case RolledBack(pointer=pointer):
                click.echo(f"readers of {collection} now see {pointer.release}")
            case refused:
                _refuse(refused)


@click.command()
@click.argument("collection")
@click.option("--keep", type=click.IntRange(min=1), required=True, help="How many complete releases stay.")
def retire(collection: str, keep: int) -> None:
    """Retire old releases of COLLECTION; the published one always stays."""
    with library_context() as context:
        match library.retire(context, collection, keep):
            case Retired(release_ids=release_ids):
                for release_id in release_ids:
                    click.echo(f"retired {release_id}")
            case refused:
                _refuse(refused)


@click.command()
@click.argument("release_id", type=click.UUID)
@output_option
def verify(release_id: UUID, output: str) -> None:
    """Look at every row of the complete release RELEASE_ID; exit code 65 if it is not sound."""
    with library_context() as context:
        match library.verify(context, ReleaseId(release_id)):
            case VerifyReport() as report:
                print_facts(asdict(report), output)
            case refused:
                _refuse(refused)
    if not report.ok:
        raise DataRefused("; ".join(report.failures), reason="VerificationFailed")


def _named(context: Context, collection: str, release: str) -> ReleaseId:
    found = [known.release_id for known in library.releases(context, collection) if known.release == release]
    if not found:
        raise InvalidRequest(f"there is no release {collection}/{release}", reason="UnknownRelease")
    return found[0]


def _print_rollback(context: Context, collection: str) -> None:
    found = library.releases(context, collection)
    now = next((release.release for release in found if release.published), None)
    before = next((release.release for release in found if release.previous), None)
    if now is None or before is None:
        raise InvalidRequest(f"{collection} has no previous release to go back to", reason="NoPreviousRelease")
    click.echo(f"readers of {collection} see {now} and would see {before}; repeat with --yes")


def _refuse(refused: Declined | PublicationUnknown) -> NoReturn:
    match refused:
        case Declined(reason=reason, message=message):
            raise InvalidRequest(message, reason=reason)
        case PublicationUnknown(message=message):
            raise DatabaseUnavailable(message, reason="PublicationUnknown")
