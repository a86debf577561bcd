"""A client that asks about the same addresses all the time, and what its answers may have been."""

import collections
import ipaddress
import threading
import time

import fibula

TABLES = ("fpm", "kernel")


class Client:
    """Asks from a thread of its own. Each distinct answer is kept until `judge` is called."""

    def __init__(self, addresses):
        self.addresses = list(addresses)
        self.asked = 0
        self.slowest = 0.0
        self.errors = []
        self._seen = collections.Counter()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._pause = threading.Event()
        self._resting = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        self._thread.start()

    def stop(self):
        self._stop.set()
        self._thread.join(60)

    def pause(self):
        """Returns once nothing is being asked: fibula is about to be ended, or stopped."""
        self._resting.clear()
        self._pause.set()
        self._resting.wait(60)

    def resume(self):
        self._pause.clear()

    def _run(self):
        connection = fibula.Connection(timeout=20)
        while not self._stop.is_set():
            for address in self.addresses:
                if self._stop.is_set():
                    break
                while self._pause.is_set() and not self._stop.is_set():
                    connection.close()
                    self._resting.set()
                    time.sleep(0.01)
                self._ask(connection, address)

    def _ask(self, connection, address):
        begin = time.monotonic()
        try:
            found = connection.json(f"/v1/lookup/{address}")
            self.slowest = max(self.slowest, time.monotonic() - begin)
            self._keep(address, {table["table"]: table for table in found["tables"]})
        except Exception as error:  # whatever it is, it is what this client must not see
            with self._lock:
                self.errors.append(f"{address}: {type(error).__name__}: {error}")
            time.sleep(0.05)

    def _keep(self, address, tables):
        for name in TABLES:
            table = tables.get(name, {"match": None, "covering": []})
            answer = fibula.answer(table["match"])
            first = fibula.answer(table["covering"][0]) if table["covering"] else None
            with self._lock:
                self.asked += 1
                self._seen[name, address, answer] += 1
                if first != answer:
                    self.errors.append(f"{name} {address}: the match is {answer}, the first covering route {first}")

    def take(self):
        """The distinct answers since the last call, with how often each was given."""
        with self._lock:
            seen, self._seen = self._seen, collections.Counter()
        return seen


class Truth:
    """What a table may have said at any time of a stretch: for each prefix, the values that it had in one of the states
    that were seen, or could have had on the way between them."""

    def __init__(self):
        self.states = []
        self.pool = None

    def add(self, state):
        self.states.append(state)

    def values(self, prefix):
        return {state.get(prefix) for state in self.states}

    def may_be_absent(self, prefix):
        return None in self.values(prefix) or (self.pool is not None and self.pool.may_be_absent(prefix))

    def may_be(self, prefix, value):
        return value in self.values(prefix) or (self.pool is not None and self.pool.may_be(prefix, value))

    def allows(self, address, answer):
        """Walks the prefixes that cover the address, the longest first."""
        for prefix in covering(address):
            if answer is not None and answer[0] == prefix:
                return self.may_be(prefix, answer[1])
            if not self.may_be_absent(prefix):
                return False
        return answer is None


class Pool:
    """What could have been between several configurations of the neighbours, one of which was never seen whole: any of the
    next hops that were announced for a prefix, or several of them."""

    def __init__(self, configurations):
        self.configurations = configurations  # each: prefix -> set of next hops

    def may_be_absent(self, prefix):
        known = [hops.get(prefix) for hops in self.configurations]
        return any(known) and not all(known)

    def may_be(self, prefix, value):
        hops = set().union(*(hops.get(prefix, ()) for hops in self.configurations))
        kind, found = value
        return kind == "unicast" and bool(found) and all(each in hops for each in found)


class Flushed(Pool):
    """Where an interface goes down: the kernel takes routes over it out by itself, until the daemon gives them other next hops.
    How long that is depends on the daemon."""

    def __init__(self, configurations, states, interface):
        super().__init__(configurations)
        self.gone = {
            prefix for state in states for prefix, (_kind, hops) in state.items()
            if hops and all(over == interface for _gateway, over, _weight in hops)
        }

    def may_be_absent(self, prefix):
        return prefix in self.gone or super().may_be_absent(prefix)


class Refilled(Pool):
    """Where a table is really emptied, and filled again from several neighbours. A new zebra first has what its predecessor
    left in the kernel, and says it with weights of 256 where there were none (FRR 8.4.4)."""

    def may_be(self, prefix, value):
        kind, found = value
        found = tuple((gateway, over, 1 if weight == 256 else weight) for gateway, over, weight in found)
        return super().may_be(prefix, (kind, found))

    def may_be_absent(self, _prefix):
        return True


def covering(address):
    """All prefixes that cover an address, the longest first."""
    address = ipaddress.ip_address(address)
    bits = address.max_prefixlen
    for length in range(bits, -1, -1):
        first = int(address) >> (bits - length) << (bits - length)
        yield f"{type(address)(first)}/{length}"


def judge(seen, truths):
    """The answers that were right at no time, as text."""
    wrong = []
    for (table, address, answer), times in seen.items():
        if not truths[table].allows(address, answer):
            states = [next(((p, s[p]) for p in covering(address) if p in s), None) for s in truths[table].states]
            wrong.append(f"{table} {address}: {times} times {answer}; true were {states}")
    return wrong
