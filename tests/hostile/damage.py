"""Damage to bytes and to JSON documents, drawn by a random.Random; each says what it did."""

import copy
import json
import math
from random import Random
from typing import Any

STRANGE = (
    *(b"\0", b"\xff\xfe", b"\xef\xbb\xbf", b"\x1b[31m", b'"', b"'", b"\n", b"\r", b"\r\n", b"\t"),
    *(b",", b";", b"\xc3", b"\xe2\x80\xae", b"\xed\xa0\x80", b"\x1a", b"\\", b"%s", b"{}", b"&"),
    *(b"<", b">", b"]", b"[", b"-", b"9", b"e", b".", b" "),
)
VALUES = (
    *(None, True, False, 0, 1, -1, 2, 7, 0.5, -0.0, 1e-9, 1e308, 10**30, -(10**19), 2**31, 2**63),
    *("", "a", "0", "nan", "gcn", "gcnii", "\x1b[31mred", "line\nline", "../../../etc/passwd"),
    *("\0", "é" * 40, "\udc80", [], [[]], {}, [None], {"": None}, [0], {"a": [1]}, "x" * 100_000),
)
UNPRINTABLE = (math.nan, math.inf, -math.inf)  # which JSON does not have, but Python writes


def damaged_bytes(random: Random, content: bytes) -> tuple[bytes, str]:
    """The content with one thing wrong, and what that is."""
    size = len(content)
    i, j = sorted((random.randrange(size + 1), random.randrange(size + 1)))
    j = min(j, i + random.choice((1, 2, 8, 64, 4096)))
    piece = random.choice(STRANGE)
    at = min(i, size - 1)
    bit = 1 << random.randrange(8)
    found = {
        f"flip bit {bit} of byte {at}": (
            content[:at] + bytes([content[at] ^ bit]) + content[at + 1 :]
        ),
        f"cut after {i} bytes": content[:i],
        f"cut {i} bytes off the front": content[i:],
        f"leave out bytes {i} to {j}": content[:i] + content[j:],
        f"repeat bytes {i} to {j}": content[:j] + content[i:],
        f"put {piece!r} at byte {i}": content[:i] + piece + content[i:],
        f"put {piece!r} in place of bytes {i} to {j}": content[:i] + piece + content[j:],
        f"append {piece!r} {j - i} times": content + piece * (j - i),
        f"zero bytes {i} to {j}": content[:i] + bytes(j - i) + content[j:],
    }
    told = random.choice(list(found))
    return found[told], told


def damaged_tensors(random: Random, content: bytes) -> tuple[bytes, str]:
    """A safetensors file with its bytes, its header or the length of its header damaged."""
    how = random.choice(("bytes", "bytes", "header", "length", "pickle"))
    if how == "bytes":
        return damaged_bytes(random, content)
    if how == "pickle":
        return PICKLE + content[len(PICKLE) :], "a pickle in its place"
    length = int.from_bytes(content[:8], "little")
    if how == "length":
        other = random.choice((0, 1, length - 1, length + 1, length * 2, 2**31, 2**63, 2**64 - 1))
        return other.to_bytes(8, "little") + content[8:], f"a header of {other} bytes"
    document, told = damaged_document(random, json.loads(content[8 : 8 + length]))
    header = document.encode("utf-8", "surrogatepass")
    return len(header).to_bytes(8, "little") + header + content[8 + length :], f"header: {told}"


# What torch.load would run: os.system("touch …") writes a file that must never be there.
CANARY = "hostile-code-was-run"
PICKLE = b"cos\nsystem\n(S'touch " + CANARY.encode() + b"'\ntR."


def damaged_document(random: Random, document: Any) -> tuple[str, str]:
    """A JSON document with one thing wrong, as text, and what that is."""
    document = copy.deepcopy(document)
    places = list(_places(document))
    owner, key, path = random.choice(places)
    how = random.choice(("replace", "replace", "replace", "nudge", "remove", "add", "nest", "swap"))
    if how == "nudge" and not _nudged(random, owner, key):
        how = "replace"
    if how == "replace":
        owner[key] = random.choice((*VALUES, *UNPRINTABLE))
    elif how == "remove":
        del owner[key]
    elif how == "add":
        _added(owner, random.choice(("a", "__class__", "version", "")), random.choice(VALUES))
    elif how == "swap":
        other, its_key, its_path = random.choice(places)
        path = f"{path} with {its_path}"
        owner[key], other[its_key] = copy.deepcopy((other[its_key], owner[key]))
    text = json.dumps(document)
    if how == "nest":
        depth = random.choice((3, 900, 100_000))
        owner[key] = "NEST"
        text = json.dumps(document).replace('"NEST"', "[" * depth + "]" * depth)
    told = f"{how} {path}"
    return text, f"{told} → {owner[key]!r:.60}" if how in ("replace", "nudge") else told


def _nudged(random: Random, owner: Any, key: Any) -> bool:
    """Change a value for another of its type; False if it has none."""
    match owner[key]:
        case bool(value):
            owner[key] = not value
        case int(value) | float(value):
            owner[key] = value + random.choice((1, -1, 1e-3, -value, value))
        case str(value) if value:
            i = random.randrange(len(value))
            owner[key] = value[:i] + random.choice("a0Z") + value[i + 1 :]
        case list(value) if value:
            owner[key] = random.choice((value[:-1], value * 2, value[::-1]))
        case _:
            return False
    return True


def _added(owner: Any, key: str, value: Any) -> None:
    if isinstance(owner, dict):
        owner[key] = value
    else:
        owner.append(value)


def _places(value: Any, path: str = "") -> Any:
    """(owner, key, path) of everything inside a document."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in items:
        here = f"{path}.{key}" if path else str(key)
        yield value, key, here
        if isinstance(inner, dict | list):
            yield from _places(inner, here)
