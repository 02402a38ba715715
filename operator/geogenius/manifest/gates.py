"""Whether gates fit a manifest: a misspelt type would be noticed only when everything is loaded."""

from geogenius.domain.errors import InvalidRequest
from geogenius.domain.manifest import Manifest
from geogenius.domain.run import VerificationGates


def check_gates(gates: VerificationGates, manifest: Manifest) -> None:
    """Refuse gates about area types that the manifest does not declare: InvalidRequest (UnknownAreaType)."""
    declared = {kind.key for kind in manifest.area_types}
    unknown = sorted({*gates.minimum_areas, *gates.required_types} - declared)
    if unknown:
        message = f"verification: the manifest has no area type {', '.join(unknown)}"
        raise InvalidRequest(message, reason="UnknownAreaType")
