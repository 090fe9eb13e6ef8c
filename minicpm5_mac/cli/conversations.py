"""`minicpm5-mac conversations`: list, search, show, rename, delete and export what was said."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from minicpm5_mac.failure import Failure

if TYPE_CHECKING:
    from minicpm5_mac.conversations.records import Conversation
    from minicpm5_mac.conversations.store import ConversationStore

_ID_HELP = "beginning of a conversation's id, or `last` for the one used last"


def add_parser(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Declare the command and its own commands."""
    parser = commands.add_parser(
        "conversations",
        help="list, search, show, rename, delete, export stored conversations",
        description="Stored conversations. An id may be shortened as long as it is the only one.",
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)

    listing = actions.add_parser("list", help="the one used last first")
    listing.add_argument("--limit", type=_count, metavar="N", help="at most N of them")
    listing.add_argument("--json", action="store_true", help="one JSON object a line")
    listing.set_defaults(run=_list)

    searching = actions.add_parser("search", help="those that have all the words")
    searching.add_argument("words", nargs="+", metavar="WORD", help="parts of words count too")
    searching.add_argument("--limit", type=_count, metavar="N", default=50, help="default: 50")
    searching.add_argument("--json", action="store_true", help="one JSON object a line")
    searching.set_defaults(run=_search)

    showing = actions.add_parser("show", help="print one as Markdown")
    showing.add_argument("id", metavar="ID", help=_ID_HELP)
    showing.add_argument("--reasoning", action="store_true", help="with the model's thinking")
    showing.set_defaults(run=_show)

    renaming = actions.add_parser("rename", help="give one another title")
    renaming.add_argument("id", metavar="ID", help=_ID_HELP)
    renaming.add_argument("title", metavar="TITLE")
    renaming.set_defaults(run=_rename)

    deleting = actions.add_parser("delete", help="remove some for good, with their drafts")
    deleting.add_argument("ids", nargs="+", metavar="ID", help=_ID_HELP)
    deleting.add_argument("--yes", action="store_true", help="do not ask")
    deleting.set_defaults(run=_delete)

    exporting = actions.add_parser("export", help="write one as Markdown or JSON")
    exporting.add_argument("id", metavar="ID", help=_ID_HELP)
    exporting.add_argument(
        "--format",
        choices=("markdown", "json"),
        help="default: by the file's ending, else markdown; JSON has all branches",
    )
    exporting.add_argument("--output", "-o", metavar="FILE", help="default: standard output")
    exporting.add_argument("--no-reasoning", action="store_true", help="Markdown without thinking")
    exporting.add_argument("--force", action="store_true", help="replace an existing FILE")
    exporting.set_defaults(run=_export)


def _list(arguments: argparse.Namespace) -> int:
    with _opened() as store:
        found = store.list(limit=arguments.limit)
        short = {} if arguments.json else store.short_ids()
        for conversation in found:
            print(
                json.dumps(_fields(conversation), ensure_ascii=False)
                if arguments.json
                else _line(conversation, short[conversation.id])
            )
    if not found and not arguments.json:
        print("There are no conversations yet.", file=sys.stderr)
    return 0


def _search(arguments: argparse.Namespace) -> int:
    from minicpm5_mac.conversations.search import search

    with _opened() as store:
        hits = search(store, " ".join(arguments.words), arguments.limit)
        short = {} if arguments.json else store.short_ids()
        for hit in hits:
            if arguments.json:
                where = {"message": hit.message, "role": hit.role, "snippet": hit.snippet}
                print(json.dumps({**_fields(hit.conversation), **where}, ensure_ascii=False))
                continue
            print(_line(hit.conversation, short[hit.conversation.id]))
            if hit.message is not None:
                print(f"{'':10}{hit.role}: {_emphasized(hit.snippet, hit.marks)}")
    if not hits:
        print("No conversation has all of these words.", file=sys.stderr)
    return 0 if hits else 1


def _show(arguments: argparse.Namespace) -> int:
    from minicpm5_mac.conversations.export import export_markdown

    with _opened() as store:
        text = export_markdown(store, _found(store, arguments.id).id, arguments.reasoning)
    sys.stdout.write(_harmless(text) if sys.stdout.isatty() else text)
    return 0


def _rename(arguments: argparse.Namespace) -> int:
    with _opened() as store:
        print(store.rename(_found(store, arguments.id).id, arguments.title))
    return 0


def _delete(arguments: argparse.Namespace) -> int:
    with _opened() as store:
        found = {name: _found(store, name) for name in arguments.ids}
        chosen = {conversation.id: conversation for conversation in found.values()}
        if not arguments.yes:
            if not sys.stdin.isatty():
                raise Failure("Nothing was deleted.", "Without a terminal to ask on, add --yes.")
            for conversation in chosen.values():
                print(_line(conversation, conversation.id[:8]))
            if input("Delete for good? [y/N] ").strip().lower() not in ("y", "yes"):
                print("Nothing was deleted.", file=sys.stderr)
                return 1
        for conversation in chosen.values():
            store.delete(conversation.id)
            print(f"Deleted {conversation.id[:8]}  {conversation.title}")
    return 0


def _export(arguments: argparse.Namespace) -> int:
    from minicpm5_mac.conversations.export import export_json, export_markdown

    as_json = arguments.format == "json" or (
        arguments.format is None and (arguments.output or "").lower().endswith(".json")
    )
    with _opened() as store:
        conversation = _found(store, arguments.id).id
        if as_json:
            text = export_json(store, conversation)
        else:
            text = export_markdown(store, conversation, not arguments.no_reasoning)
    if arguments.output is None:
        sys.stdout.write(text)
        return 0
    path = Path(arguments.output).expanduser()
    try:
        with path.open("w" if arguments.force else "x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise Failure(f"{path} is there already.", "Add --force to replace it.") from None
    except OSError as error:
        raise Failure(f"{path} cannot be written: {error.strerror}.") from error
    print(f"Wrote {path}", file=sys.stderr)
    return 0


def _opened() -> ConversationStore:
    from minicpm5_mac.conversations.store import ConversationStore

    store = ConversationStore()
    if store.set_aside is not None:
        print(
            f"minicpm5-mac: the conversation file was damaged; it is kept as {store.set_aside}, "
            "and a new one was begun.",
            file=sys.stderr,
        )
    return store


def _found(store: ConversationStore, name: str) -> Conversation:
    if name == "last":
        latest = store.latest()
        if latest is None:
            raise Failure("There are no conversations yet.")
        return latest
    return store.find(name)


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def _line(conversation: Conversation, short: str) -> str:
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(conversation.updated))
    return f"{short:<8}  {day}  {conversation.messages:>4}  {conversation.title}"


def _fields(conversation: Conversation) -> dict[str, Any]:
    return {
        "id": conversation.id,
        "title": conversation.title,
        "created": conversation.created,
        "updated": conversation.updated,
        "messages": conversation.messages,
    }


def _emphasized(snippet: str, marks: tuple[tuple[int, int], ...]) -> str:
    if not sys.stdout.isatty():
        return snippet
    for start, end in reversed(marks):
        snippet = f"{snippet[:start]}\x1b[1m{snippet[start:end]}\x1b[0m{snippet[end:]}"
    return snippet


def _harmless(text: str) -> str:
    """Without what a terminal would obey; a file or pipe gets the text as it is."""
    return "".join(c for c in text if c in "\n\t" or not (c < " " or "\x7f" <= c < "\xa0"))
