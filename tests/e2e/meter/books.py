# SPDX-License-Identifier: Apache-2.0
"""Reads a grant file from outside, as docs/formats/grant.md describes it: limits, totals, charges, exports."""
import mmap
import struct

UNIT = 64 * 1024
MIB = 1 << 20
GRANULE = 2 * MIB
CARDS, SLOTS, EXPORTS = 16, 1024, 256
ACCOUNTS_AT, EXPORTS_AT = 4096, 4096 + 65536
SLOTS_AT = EXPORTS_AT + 49152
FILE_BYTES = SLOTS_AT + 832 * SLOTS
CONTEXT = 518 * MIB   # first context of a process on a card
MORE = 524 * MIB      # every further one
RESERVE = 62 * MIB    # held back with the first: reserve and spare slab


class Books:
    def __init__(self, path):
        self.path = path
        with open(path, "r+b") as file:
            self.map = mmap.mmap(file.fileno(), FILE_BYTES)

    def word(self, at):
        return struct.unpack_from("<Q", self.map, at)[0]

    def set_word(self, at, value):
        struct.pack_into("<Q", self.map, at, value)

    def account(self, card, part, field):
        return ACCOUNTS_AT + (part * CARDS + card) * 64 + 8 * field

    def limit(self, card=0, part=0):
        return self.word(self.account(card, part, 0))

    def set_limit(self, value, card=0, part=0):
        self.set_word(self.account(card, part, 0), value)

    def total(self, card=0, part=0):
        return (self.word(self.account(card, part, 1)) >> 38) * UNIT

    def peak(self, card=0, part=0):
        return self.word(self.account(card, part, 2)) * UNIT

    def excess(self, card=0, part=0):
        return self.word(self.account(card, part, 3)) * UNIT

    def refusals(self, card=0, part=0):
        return self.word(self.account(card, part, 4))

    def escapes(self):
        return self.word(120)

    def publish_free(self, value, card=0):
        """As the sampler does, in a way that does not grow old."""
        at = 2048 + 128 * card
        self.set_word(at + 48, value)
        self.set_word(at + 56, 1 << 62)

    def slot_at(self, slot):
        return SLOTS_AT + slot * 832

    def owner(self, slot):
        """(pid, namespace, start time, image), or None for a free slot."""
        raw = self.word(self.slot_at(slot))
        return (raw >> 42, raw >> 38 & 15, raw >> 12 & (1 << 26) - 1, raw & 0xfff) if raw else None

    def slot_of(self, pid):
        found = [s for s in range(self.word(128)) if (self.owner(s) or (0,))[0] == pid]
        return found[0] if found else None

    def owners(self):
        return [self.owner(s)[0] for s in range(self.word(128)) if self.owner(s)]

    def charge_word(self, slot, card):
        return self.slot_at(slot) + 64 + card * 48 + 8

    def charge(self, slot, card=0):
        return (self.word(self.charge_word(slot, card)) >> 38) * UNIT

    def pending(self, card=0):
        return sum((self.word(self.slot_at(s) + 64 + card * 48 + 16) & 0xffffffff) * UNIT
                   for s in range(self.word(128)) if self.owner(s))

    def unseen(self, pid, card=0):
        """Charged, but not in NVML's figure for the process."""
        return self.word(self.slot_at(self.slot_of(pid)) + 64 + card * 48 + 40) * UNIT

    def read_at(self, pid):
        """When NVML was last read for the process, in nanoseconds."""
        return self.word(self.slot_at(self.slot_of(pid)) + 24)

    def nvml(self, pid, card=0):
        """What NVML said then that it holds."""
        return self.word(self.slot_at(self.slot_of(pid)) + 64 + card * 48 + 24)

    def excess_of(self, pid, card=0):
        """How far that is beyond its charge."""
        return self.word(self.slot_at(self.slot_of(pid)) + 64 + card * 48 + 32) * UNIT

    def reserve(self, pid, card=0):
        """What is left of the reserve of the process, or None where it is not to be lent."""
        raw = self.word(self.slot_at(self.slot_of(pid)) + 64 + card * 48 + 16)
        return (raw >> 32 & 0xfff) * UNIT if raw >> 44 & 1 else None

    def of(self, pid, card=0):
        """What the process is charged, or None when it has no slot."""
        slot = self.slot_of(pid)
        return None if slot is None else self.charge(slot, card)

    def exports(self):
        """Number of entries in use."""
        return sum((self.word(EXPORTS_AT + i * 192) >> 22 & 3) != 0 for i in range(EXPORTS))

    def sum_of_charges(self, card=0, part=0):
        """All charges of an account. Its last change may be half done (its maker died): completed here as any process would."""
        charges = {}
        for slot in range(SLOTS):
            if self.word(self.slot_at(slot) + 8) == part:
                raw = self.word(self.charge_word(slot, card))
                charges[slot] = (raw >> 38, raw & 0xfffffff)
        total = self.word(self.account(card, part, 1))
        maker, number = total >> 28 & 0x3ff, total & 0xfffffff
        intent = self.word(self.slot_at(maker) + 64 + card * 48)
        target = intent >> 28 & 0x3ff
        if intent & 0xfffffff == number and target in charges and charges[target][1] != number:
            charges[target] = (intent >> 38, number)
        return sum(units for units, _ in charges.values()) * UNIT

    def cards(self):
        return struct.unpack_from("<I", self.map, 88)[0]

    def parts(self):
        return struct.unpack_from("<I", self.map, 92)[0]
