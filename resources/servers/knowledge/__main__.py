"""The knowledge server's command line: `serve`, `index` and `search`.

Run as `python <this folder> serve --folder DIR`; needs no environment variable. With no `--folder` the folders
given to `index` are used, and where there are none, the sample documents beside this file.
"""

from __future__ import annotations

import argparse
import dataclasses
import ipaddress
import json
import sys
import threading
from pathlib import Path

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from knowledge_cache import cache_folder, remember, remembered  # noqa: E402
from knowledge_index import BadRequest, Index  # noqa: E402


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    host = host.strip("[]") or "127.0.0.1"
    try:
        local = host == "localhost" or ipaddress.ip_address(host).is_loopback
        number = int(port)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no HOST:PORT such as 127.0.0.1:8010") from None
    if not local:
        raise argparse.ArgumentTypeError("documents are served to this computer only; use 127.0.0.1:PORT")
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"{number} is no port")
    return host, number


def _top_k(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 20:
        raise argparse.ArgumentTypeError("use a whole number from 1 to 20")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="knowledge", description="Search folders of Markdown and text files.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--cache", metavar="DIR", help="where the index is kept; 'memory' keeps none")
    folders = argparse.ArgumentParser(add_help=False)
    folders.add_argument("--folder", action="append", type=Path, default=[], metavar="DIR", help="a folder to search")
    plain = argparse.ArgumentParser(add_help=False)
    plain.add_argument("--json", action="store_true", help="one JSON object a line")
    serve = verbs.add_parser("serve", parents=[common, folders], help="run as an MCP server")
    way = serve.add_mutually_exclusive_group()
    way.add_argument("--stdio", action="store_true", help="over standard input and output (the default)")
    way.add_argument("--http", type=_address, metavar="HOST:PORT", help="over Streamable HTTP")
    index = verbs.add_parser("index", parents=[common, plain], help="index a folder and remember it")
    index.add_argument("dir", type=Path)
    search = verbs.add_parser("search", parents=[common, folders, plain], help="search from the command line")
    search.add_argument("text")
    search.add_argument("--top-k", type=_top_k, default=5, metavar="N")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one verb; returns the exit code: 0 done, 1 failed, 2 wrong use."""
    args = _parser().parse_args(argv)
    cache = None if args.cache == "memory" else Path(args.cache) if args.cache else cache_folder()
    kept = cache_folder() if cache is None else cache
    try:
        if args.verb == "index":
            return _index(args.dir, cache, kept, as_json=args.json)
        folders = args.folder or remembered(kept) or [HERE / "sample"]
        index = Index(folders, cache)
        if args.verb == "search":
            return _search(index, args.text, args.top_k, as_json=args.json)
    except BadRequest as error:
        print(f"knowledge: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"knowledge: {error}", file=sys.stderr)
        return 1
    # The first scan runs while the SDK is being imported, which takes most of a second.
    threading.Thread(target=index.refresh, name="first scan", daemon=True).start()
    import knowledge_server

    try:
        if args.http:
            knowledge_server.serve_http(index, *args.http)
        else:
            knowledge_server.serve_stdio(index)
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        print(f"knowledge: cannot serve: {error}", file=sys.stderr)
        return 1
    return 0


def _index(folder: Path, cache: Path | None, kept: Path, *, as_json: bool) -> int:
    index = Index([folder], cache)
    index.refresh(force=True)
    if cache is not None:
        remember(kept, folder)
    stats = index.stats()
    index.close()
    told = f"{stats['documents']} documents, {stats['passages']} passages indexed in {folder}"
    print(json.dumps(stats, ensure_ascii=False) if as_json else told)
    return 0


def _search(index: Index, text: str, top_k: int, *, as_json: bool) -> int:
    hits = index.search(text, top_k)
    index.close()
    for hit in hits:
        if as_json:
            print(json.dumps(dataclasses.asdict(hit), ensure_ascii=False))
        else:
            print(f"{hit.path}:{hit.first_line}  {hit.heading}  ({hit.score:g})\n{hit.text}\n")
    if not hits:
        print(f"nothing was found for {text!r}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
