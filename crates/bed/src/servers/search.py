"""Index search with Xapian: builds an index of generated documents, and queries it.

Problem: `forerun-bed servers search` needs the reads of a real search engine. Xapian keeps postings and
positions in B-trees of 8 KiB blocks that are compacted in the order of terms, so a query reads a few
long runs at the same time. Documents are drawn from a vocabulary by Zipf's law, with a fixed seed.

    search.py build INDEX DOCUMENTS SEED      two processes, merged by xapian-compact
    search.py query INDEX CLIENTS SECONDS SEED [GROUP]

A client is a process with the index open; it joins the memory group before it opens anything. Half of
the queries are three words in any order (BM25, the ten best), half a phrase of two words. Both commands
print one line of JSON. It needs the Debian packages python3-xapian and xapian-tools.
"""

import fcntl
import gc
import json
import os
import random
import shutil
import struct
import subprocess
import sys
import time
from bisect import bisect_left
from itertools import accumulate

VOCABULARY = 100_000
WORDS = 80
# The commonest words are as useless in a query as "the" is; rare ones have lists of a block or none.
QUERY_RANKS = range(10, 2_000)
BUILDERS = 2


def word(rank):
    """The word of a rank: letters only, so that Xapian takes it for one term."""
    text = ""
    rank += 26
    while rank:
        rank, letter = divmod(rank, 26)
        text += chr(ord("a") + letter)
    return "w" + text


def weights(ranks):
    """The cumulative weights of Zipf's law with exponent 1."""
    return list(accumulate(1 / (rank + 1) for rank in ranks))


def build_part(path, documents, seed):
    import xapian

    draws = random.Random(seed)
    words = [word(rank) for rank in range(VOCABULARY)]
    cumulative = weights(range(VOCABULARY))
    flags = xapian.DB_CREATE | xapian.DB_NO_TERMLIST
    database = xapian.WritableDatabase(path, flags)
    generator = xapian.TermGenerator()
    for _ in range(documents):
        document = xapian.Document()
        generator.set_document(document)
        generator.set_termpos(0)
        generator.index_text(" ".join(draws.choices(words, cum_weights=cumulative, k=WORDS)))
        database.add_document(document)
    database.commit()
    database.close()


def build(path, documents, seed):
    os.environ["XAPIAN_FLUSH_THRESHOLD"] = "50000"
    parts = [f"{path}.part{number}" for number in range(BUILDERS)]
    whole = f"{path}.whole"
    # The builders hold the lock as well: one whose parent was killed still writes.
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"{os.path.dirname(path)}: another index is being built here")
    # Left by a build that was interrupted.
    for rest in [*parts, whole]:
        shutil.rmtree(rest, ignore_errors=True)
    builders = []
    for number, part in enumerate(parts):
        process = os.fork()
        if process == 0:
            share = documents * (number + 1) // BUILDERS - documents * number // BUILDERS
            build_part(part, share, seed * BUILDERS + number)
            os._exit(0)
        builders.append(process)
    statuses = [os.waitpid(process, 0)[1] for process in builders]
    if any(statuses):
        signals = [os.WTERMSIG(status) for status in statuses if os.WIFSIGNALED(status)]
        # One that ended by itself has told why.
        sys.exit(f"a builder was ended by signal {signals[0]}" if signals else 1)
    subprocess.run(["xapian-compact", "-q", *parts, whole], check=True)
    for part in parts:
        shutil.rmtree(part)
    os.rename(whole, path)
    size = sum(entry.stat().st_size for entry in os.scandir(path))
    print(json.dumps({"documents": documents, "bytes": size}))


def query(xapian, words):
    if len(words) == 2:
        return xapian.Query(xapian.Query.OP_PHRASE, words)
    return xapian.Query(xapian.Query.OP_OR, words)


def client(xapian, path, number, seed, start, end, cumulative):
    """Queries until the end; the times of all that returned, in nanoseconds."""
    draws = random.Random(seed * 1_000_003 + number)
    enquire = xapian.Enquire(xapian.Database(path))
    times = []
    begun = max(start, time.monotonic_ns())
    time.sleep(max(0, start - time.monotonic_ns()) / 1e9)
    while begun < end:
        count = draws.choice((2, 3))
        at = [bisect_left(cumulative, draws.random() * cumulative[-1]) for _ in range(count)]
        words = [word(QUERY_RANKS[min(rank, len(QUERY_RANKS) - 1)]) for rank in at]
        enquire.set_query(query(xapian, words))
        for match in enquire.get_mset(0, 10):
            match.docid
        now = time.monotonic_ns()
        times.append(now - begun)
        begun = now
    return times


def run_clients(path, clients, seconds, seed):
    import xapian

    cumulative = weights(QUERY_RANKS)
    gc.disable()
    gc.freeze()
    # All processes are there before the first query.
    start = time.monotonic_ns() + 500_000_000 + clients * 5_000_000
    end = start + int(seconds * 1e9)
    pipes = []
    for number in range(clients):
        reading, writing = os.pipe()
        if os.fork() == 0:
            os.close(reading)
            status = 1
            try:
                times = client(xapian, path, number, seed, start, end, cumulative)
                with os.fdopen(writing, "wb") as output:
                    output.write(struct.pack(f"<{len(times)}Q", *times))
                status = 0
            finally:
                os._exit(status)
        os.close(writing)
        pipes.append(reading)
    counts, times = [], []
    for reading in pipes:
        with os.fdopen(reading, "rb") as source:
            bytes_ = source.read()
        own = struct.unpack(f"<{len(bytes_) // 8}Q", bytes_)
        # The query under way at the end counts by the part of it that fell into the time.
        late = max(0, sum(own) - (end - start))
        counts.append(len(own) - late / own[-1] if own else 0.0)
        times.extend(own)
    failed = sum(os.wait()[1] != 0 for _ in range(clients))
    times.sort()

    def at(share):
        return times[min(len(times) - 1, int(len(times) * share))] / 1e6 if times else 0.0

    mean = sum(counts) / clients
    print(
        json.dumps(
            {
                "completed": sum(counts),
                "seconds": seconds,
                "p50_ms": at(0.5),
                "p99_ms": at(0.99),
                "slowest_per_mean": min(counts) / mean if mean else 0.0,
                "errors": failed,
            }
        )
    )


def main():
    command, path, number, rest, *more = sys.argv[1:]
    if command == "build":
        return build(path, int(number), int(rest))
    seed, *group = more
    for folder in group:
        with open(os.path.join(folder, "cgroup.procs"), "w") as members:
            members.write(str(os.getpid()))
    run_clients(path, int(number), float(rest), int(seed))


if __name__ == "__main__":
    main()
