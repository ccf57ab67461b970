"""The kill test: writers that outlive their server, and the check of what they wrote. `kill_test` runs both and kills the server.

kill_test.py prepare URI                  makes the accounts
kill_test.py write URI STOP OUT [NAME]    writes from 32 threads until the file STOP exists, then writes to OUT what was acknowledged
kill_test.py check URI OUT...             compares the database with what all writers were told

Each write carries a token of its own. A token that was acknowledged must be there once, any other one at most once. The balances of the
accounts must be those that the log of the transactions gives.
"""

import collections
import json
import os
import random
import sys
import threading

from pymongo import MongoClient
from pymongo.errors import PyMongoError
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern

ACCOUNTS = 200
BALANCE = 1000
THREADS = 32
# A document holds this many tokens, so that it stays short.
TOKENS = 100


def connect(uri):
    return MongoClient(uri, serverSelectionTimeoutMS=30000, heartbeatFrequencyMS=500, maxPoolSize=THREADS)


def prepare(uri):
    db = connect(uri).kill
    db.accounts.insert_many([{"_id": n, "n": BALANCE} for n in range(ACCOUNTS)])
    for name in ("log", "inserts", "counters"):
        db.create_collection(name)


class Writer:
    def __init__(self, client, name, stop):
        self.client, self.db, self.name, self.stop = client, client.kill, name, stop
        self.acknowledged = {"insert": [], "count": [], "transfer": []}
        self.attempts, self.unknown = 0, 0

    def run(self):
        while not os.path.exists(self.stop):
            kind, write = [("insert", self.insert), ("count", self.count), ("transfer", self.transfer)][self.attempts % 3]
            token = f"{self.name}-{self.attempts}"
            self.attempts += 1
            try:
                write(token)
                self.acknowledged[kind].append(token)
            except PyMongoError:
                self.unknown += 1

    def insert(self, token):
        self.db.inserts.insert_one({"_id": token})

    def count(self, token):
        counter = f"{self.name}/{self.attempts // (3 * TOKENS)}"
        update = {"$inc": {"n": 1}, "$push": {"tokens": token}}
        self.db.counters.update_one({"_id": counter}, update, upsert=True)

    def transfer(self, token):
        source, target = random.sample(range(ACCOUNTS), 2)

        def work(session):
            self.db.accounts.update_one({"_id": source}, {"$inc": {"n": -1}}, session=session)
            self.db.accounts.update_one({"_id": target}, {"$inc": {"n": 1}}, session=session)
            self.db.log.insert_one({"token": token, "from": source, "to": target}, session=session)

        with self.client.start_session() as session:
            session.with_transaction(work, read_concern=ReadConcern("snapshot"), write_concern=WriteConcern("majority"))


def write(uri, stop, out, name="py"):
    client = connect(uri)
    writers = [Writer(client, f"{name}{n}", stop) for n in range(THREADS)]
    threads = [threading.Thread(target=writer.run) for writer in writers]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    told = {kind: [token for writer in writers for token in writer.acknowledged[kind]] for kind in writers[0].acknowledged}
    told["unknown"] = sum(writer.unknown for writer in writers)
    with open(out, "w") as file:
        json.dump(told, file)


def check(uri, outs):
    db = connect(uri).kill
    told = collections.defaultdict(list)
    unknown = 0
    for out in outs:
        with open(out) as file:
            part = json.load(file)
        unknown += part.pop("unknown")
        for kind, tokens in part.items():
            told[kind] += tokens or []
    there = {"insert": [document["_id"] for document in db.inserts.find()], "count": [], "transfer": []}
    for counter in db.counters.find():
        assert counter["n"] == len(counter["tokens"]), counter["_id"]
        there["count"] += counter["tokens"]
    balances = collections.Counter({n: BALANCE for n in range(ACCOUNTS)})
    for entry in db.log.find():
        there["transfer"].append(entry["token"])
        balances[entry["from"]] -= 1
        balances[entry["to"]] += 1
    for kind, tokens in there.items():
        twice = [token for token, n in collections.Counter(tokens).items() if n > 1]
        assert not twice, f"applied twice: {kind} {twice[:10]}"
        lost = set(told[kind]) - set(tokens)
        assert not lost, f"acknowledged and lost: {kind} {sorted(lost)[:10]}"
    stored = {account["_id"]: account["n"] for account in db.accounts.find()}
    assert stored == dict(balances), "the balances are not those of the log"
    assert all(told[kind] for kind in there), "nothing was written"
    for name in db.list_collection_names():
        assert db.validate_collection(name)["valid"], name
    counts = ", ".join(f"{len(told[kind]):,} of {kind}" for kind in there)
    extra = sum(len(tokens) - len(told[kind]) for kind, tokens in there.items())
    print(f"acknowledged: {counts}; outcome unknown to the client: {unknown:,}, of which {extra:,} were applied; none lost, none twice")


if __name__ == "__main__":
    command, uri, *rest = sys.argv[1:]
    if command == "prepare":
        prepare(uri)
    elif command == "write":
        write(uri, *rest)
    else:
        check(uri, rest)
