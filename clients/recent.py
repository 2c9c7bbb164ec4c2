"""Which memories the latest recalls showed to whom, so that a mark of use can be held against it."""

from __future__ import annotations

from collections import OrderedDict

from lorehooks.clients.backend import Recalled
from lorehooks.core.model import REHEARSALS, Origin
from lorehooks.core.runs import Recorder, Shown

_MOST = 10_000


class RecentRecalls:
    """Kept in memory, since records are written a moment later; older recalls are read back from the records."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._shown: OrderedDict[str, Shown] = OrderedDict()

    def remember(self, recalled: Recalled, origin: Origin) -> None:
        """Note what a recall shows. A rehearsal shows it to a person, whose look is no use of a memory."""
        if origin.session_id in REHEARSALS:
            return
        uris = tuple(candidate.uri for candidate in recalled.result.shown)
        self._shown[recalled.query_id] = Shown(origin.client_type, origin.session_id, uris)
        if len(self._shown) > _MOST:
            self._shown.popitem(last=False)

    def shown(self, query_id: str | None) -> Shown | None:
        """What a recall showed to whom; None for an id that none of ours had."""
        if not query_id:
            return None
        return self._shown.get(query_id) or self._recorder.shown(query_id)


def fits(shown: Shown | None, uri: str, session_id: str | None) -> bool:
    """Whether ids name a recall that showed this address, to that session as far as both are known."""
    if shown is None or uri not in shown.uris:
        return False
    return not (session_id and shown.session_id and session_id != shown.session_id)
