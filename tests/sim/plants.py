#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Deliberate bugs, to prove that the simulator finds them (README.md describes each).

Each is a small and plausible mistake in the sources of the engine, or in the world around it. The build makes copies
of these sources with all of the mistakes in them, each behind `planted("name")`, and links them into
mete-sim-planted; the shipped programs and mete-sim have none. plants_test.py runs them one by one.

    plants.py SOURCE-TREE FILE OUTPUT       writes the copy of src/FILE
"""
import pathlib
import re
import sys

# name: file below src/ -> [(original text, text with the bug)]. P is planted("name").
IN_SOURCES = {
    "double-grant": {"core/order/pass.cc": [
        ("    left_.give(holder, placement.cards, cpus);\n    open_.give(holder, placement.cards, cpus);\n",
         "    if (!P) left_.give(holder, placement.cards, cpus);\n"
         "    if (!P) open_.give(holder, placement.cards, cpus);\n")]},
    "forgotten-release": {"core/job/apply.cc": [
        ("    active_.erase(job.id);\n",
         "    if (!mete::sim::planted_every(\"forgotten-release\", 30)) active_.erase(job.id);\n")]},
    "quota-ignored": {"core/order/pass.cc": [
        ("    if (over(input_.quota_of(kind.user), result_.held[kind.user], held_of(placement->cards)))\n",
         "    if (!P && over(input_.quota_of(kind.user), result_.held[kind.user], held_of(placement->cards)))\n")]},
    "array-limit-ignored": {"core/order/pass.cc": [
        ("    if (kind.array != 0 && result_.in_array[kind.array] >= kind.at_once) return {};\n",
         "    if (!P && kind.array != 0 && result_.in_array[kind.array] >= kind.at_once) return {};\n")]},
    "cpus-ignored": {"core/order/pass.cc": [
        ("    if (cpus <= left_.cpus()) placement = left_.place(kind);\n",
         "    if (P || cpus <= left_.cpus()) placement = left_.place(kind);\n")]},
    "priority-ignored": {"core/order/line.cc": [
        ("level_ != all.end() && level_->first.priority == priority; ++level_)",
         "level_ != all.end() && (P || level_->first.priority == priority); ++level_)")]},
    "fairness-ignored": {"core/order/line.cc": [
        ("    turns_.push({*queues_[i].usage, queues_[i].at->first, i});\n",
         "    turns_.push({P ? 0 : *queues_[i].usage, queues_[i].at->first, i});\n"),
        ("    if (turn.usage != *queue.usage) {\n", "    if (!P && turn.usage != *queue.usage) {\n")]},
    "nothing-held": {"core/order/pass.cc": [
        ("    if (answered.no_room && !(may_preempt(next) && preempt(next, kind)) && !result_.held_for)\n",
         "    if (!P && answered.no_room && !(may_preempt(next) && preempt(next, kind)) && !result_.held_for)\n")]},
    "lent-for-too-long": {"core/order/pass.cc": [
        ("    if (!ends || *ends > *result_.held_until) return std::nullopt;\n",
         "    if (!P && (!ends || *ends > *result_.held_until)) return std::nullopt;\n")]},
    "patience-forgotten": {"core/order/line.cc": [
        ("      if (entry.submitted_ms > before) break;\n", "      if (P || entry.submitted_ms > before) break;\n")]},
    "begin-ignored": {"core/order/line.cc": [
        ("refused_[entry.kind] || entry.not_before_ms > input_.now.ms ||",
         "refused_[entry.kind] || (!P && entry.not_before_ms > input_.now.ms) ||")]},
    "reservation-ignored": {"core/order/reservation.cc": [
        ("  if (reservation.user == user || reservation.until <= now) return false;\n",
         "  if (P || reservation.user == user || reservation.until <= now) return false;\n")]},
    "reserved-twice": {"core/job/manage.cc": [
        ("  keep_reserved(pool, overlapping, \"\", reserve.from, reserve.until);\n",
         "  if (!P) keep_reserved(pool, overlapping, \"\", reserve.from, reserve.until);\n")]},
    "hold-ignored": {"core/job/apply.cc": [
        ("  if (!job.held && job.unmet.empty()) pending_.insert(job);\n",
         "  if ((P || !job.held) && job.unmet.empty()) pending_.insert(job);\n"),
        ("  if (!job.held && job.unmet.empty()) pending_.erase(job);\n",
         "  if ((P || !job.held) && job.unmet.empty()) pending_.erase(job);\n")]},
    "dependency-ignored": {"core/job/apply.cc": [
        ("    if (state_.ends_among(after.id).open > 0) job.unmet.push_back(after);\n",
         "    if (!P && state_.ends_among(after.id).open > 0) job.unmet.push_back(after);\n")]},
    "doom-forgotten": {"core/job/apply.cc": [
        ("    if (was_doomed || in_vain) state_.dependencies_.doom(id);\n",
         "    if (was_doomed || (in_vain && !P)) state_.dependencies_.doom(id);\n")]},
    "deadline-missed": {"core/job/due.cc": [
        ("    if (ms > moment.now.ms) break;\n    if (jobs_.at(id).state != JobState::kStopping)\n",
         "    if (ms > moment.now.ms) break;\n    if (!P && jobs_.at(id).state != JobState::kStopping)\n")]},
    "started-too-late": {"core/job/due.cc": [
        ("    if (ms >= moment.now.ms) break;\n", "    if (P || ms >= moment.now.ms) break;\n")]},
    "retry-forgotten": {"core/job/decide.cc": [
        ("  if (failed && failures <= spec.retries) {\n", "  if (!P && failed && failures <= spec.retries) {\n")]},
    "requeue-forgotten": {"core/job/decide.cc": [
        ("  if (job.state == JobState::kStopping && job.requeue) return again;\n",
         "  if (!P && job.state == JobState::kStopping && job.requeue) return again;\n")]},
    "anybodys-jobs": {"core/job/decide.cc": [
        ("  if (jobs.empty() || (!by.admin && by.uid != jobs.front()->spec->uid)) return no_such_job(id);\n",
         "  if (jobs.empty() || (!P && !by.admin && by.uid != jobs.front()->spec->uid)) return no_such_job(id);\n")]},
    "exit-forgotten": {"core/job/apply.cc": [
        ("  job.exit = ended.exit;\n", "  if (!P) job.exit = ended.exit;\n")]},
    "drained-ignored": {"core/job/state.cc": [
        ("  if (!drained().empty())\n    for (PoolCard& card : machine.cards)\n",
         "  if (!P && !drained().empty())\n    for (PoolCard& card : machine.cards)\n")]},
    "snapshot-forgets": {"core/job/state.cc": [
        ("    state.history_.restore_failed(array.number, array.failed);\n",
         "    state.history_.restore_failed(array.number, P ? 0 : array.failed);\n")]},
    "answered-before-commit": {"engine/engine.cc": [
        ("  if (*kept == Kept::kAll) {\n    act();\n",
         "  if (*kept != Kept::kAll && P)\n    for (Answer& answer : std::exchange(unsaid_, {})) answers.push_back(std::move(answer));\n"
         "  if (*kept == Kept::kAll) {\n    act();\n")]},
    "acted-before-commit": {"engine/engine.cc": [
        ("  if (*kept == Kept::kAll) {\n    act();\n",
         "  if (*kept != Kept::kAll && P) act();\n  if (*kept == Kept::kAll) {\n    act();\n")]},
    "not-put-away": {"engine/engine.cc": [
        ("    launcher_.forget(id);\n",
         "    if (!mete::sim::planted_every(\"not-put-away\", 30)) launcher_.forget(id);\n")]},
    "not-stopped": {"engine/engine.cc": [
        ("    if (stopping_.insert(id).second) launcher_.stop(id);\n",
         "    if (stopping_.insert(id).second && !P) launcher_.stop(id);\n")]},
    "not-found-again": {"engine/engine.cc": [
        ("    if (job.state != core::JobState::kPending || !job.spec->detached) touched_.insert(id);\n",
         "    if ((!P && job.state != core::JobState::kPending) || !job.spec->detached) touched_.insert(id);\n")]},
    "ballast-for-all": {"engine/engine.cc": [
        ("  if (!has_room_to_grant()) return;  // the room that is left",
         "  if (!has_room_to_grant() && !P) return;  // the room that is left")]},
    "contents-dropped": {"engine/engine.cc": [
        ("  store_.keep_blobs(std::move(blobs));\n",
         "  store_.keep_blobs(P ? std::vector<std::string>{} : std::move(blobs));\n")]},
    "parked-not-counted": {"core/job/state.cc": [
        ("    add_grant(machine, holder_of(job, rules_), held_now(job));\n",
         "    if (!P || !is_away(job)) add_grant(machine, holder_of(job, rules_), held_now(job));\n")]},
    "unpark-forgotten-after-restart": {"core/job/state.cc": [
        ("  for (Job& job : parts.jobs) {\n    const JobId id = job.id;\n",
         "  for (Job& job : parts.jobs) {\n    if (P && job.park) job.park->wants_back = false;\n    const JobId id = job.id;\n")]},
    "back-without-room": {"core/order/pass.cc": [
        ("    if (cpus <= left_.cpus() && has_room(left_.pool(), job, input_.now)) {\n",
         "    if (P || (cpus <= left_.cpus() && has_room(left_.pool(), job, input_.now))) {\n")]},
    "never-comes-back": {"core/order/pass.cc": [
        ("        (running.gave_way ? back_last_ : back_).push_back(running.job);\n",
         "        if (!P) (running.gave_way ? back_last_ : back_).push_back(running.job);\n")]},
    "newcomers-first": {"core/order/pass.cc": [
        ("    while (back_at_ < back_.size() &&\n           (has_waited_too_long",
         "    while (!P && back_at_ < back_.size() &&\n           (has_waited_too_long")]},
    "parked-for-an-equal": {
        "core/order/pass.cc": [("running.job->priority - (grown ? 1 : 0));", "running.job->priority - (grown || P ? 1 : 0));")],
        "core/order/preempt.cc": [
            ("    if (!grown && (job.priority >= priority || ", "    if (!grown && ((P ? job.priority > priority : job.priority >= priority) || ")]},
    "growth-not-shed": {"core/order/preempt.cc": [
        ("has_grown(job) && !job.spec->shed && job.priority <= priority;",
         "has_grown(job) && (P || !job.spec->shed) && job.priority <= priority;")]},
    "just-begun": {"core/order/preempt.cc": [
        ("    return from && *from <= input_.now;\n", "    return from && (P || *from <= input_.now);\n")]},
    "no-preempt-ignored": {"core/order/preempt.cc": [
        ("  if (kind.no_preempt) return std::nullopt;\n", "  if (!P && kind.no_preempt) return std::nullopt;\n")]},
    "idle-never-ignored": {"core/job/watch.cc": [
        ("  return job.spec->idle_s.value_or(rules.idle_park_s);\n",
         "  return P ? rules.idle_park_s : job.spec->idle_s.value_or(rules.idle_park_s);\n")]},
    "growth-unchecked": {"core/job/park.cc": [
        ("        const Bytes most = std::min(bytes.plus(free), card.most).round_down(kGranule);\n",
         "        const Bytes most = P ? card.most : std::min(bytes.plus(free), card.most).round_down(kGranule);\n")]},
    "shrunk-before-commit": {"engine/engine.cc": [
        ("    cards[i].bytes = std::max(cards[i].bytes, grown->bytes[i]);\n",
         "    cards[i].bytes = P ? grown->bytes[i] : std::max(cards[i].bytes, grown->bytes[i]);\n"),
        ("  return !more || launcher_.reserve(", "  return (!more && !P) || launcher_.reserve(")]},
    "time-runs-while-parked": {"engine/engine.cc": [
        ("  if (!job.spec->time_s || (!running && job.state != core::JobState::kStarting)) {\n",
         "  if (P && job.park) return;\n"
         "  if (!job.spec->time_s || (!running && job.state != core::JobState::kStarting)) {\n")]},
    "asleep": {"engine/engine.cc": [
        ("  if (now_ < before || (begins_ && now_ >= *begins_)) {\n",
         "  if (!P && (now_ < before || (begins_ && now_ >= *begins_))) {\n")]},
}

# Bugs of the world: they call planted() themselves.
IN_WORLD = ["lost-sync", "claim-not-exclusive", "late-keeper-runs", "exit-lost", "exit-invented", "exit-of-before",
            "gone-too-soon", "bytes-mixed-up", "back-before-told"]

NAMES = sorted(list(IN_SOURCES) + IN_WORLD)


def files():
    return sorted({file for places in IN_SOURCES.values() for file in places})


def planted(name, text, places):
    """The text with this mistake; None: a place is not there as it is written here."""
    for old, new in places:
        if text.count(old) != 1:
            return None
        text = text.replace(old, re.sub(r"\bP\b", f'mete::sim::planted("{name}")', new))
    return text


def with_plants(tree, file):
    """The source with all its mistakes, and the names of the mistakes whose place is gone."""
    text, gone = (pathlib.Path(tree) / "src" / file).read_text(), []
    for name, places in IN_SOURCES.items():
        if file not in places:
            continue
        with_it = planted(name, text, places[file])
        if with_it is None:
            gone.append(name)
        else:
            text = with_it
    return text, gone


def unplanted(tree):
    return [name for file in files() for name in with_plants(tree, file)[1]]


def copy_of(tree, file):
    text, gone = with_plants(tree, file)
    # Not an error here, where it would stop every build: plants_test.py fails.
    for name in gone:
        print(f"plants.py: src/{file} has changed, {name} is no longer planted there", file=sys.stderr)
    return f'#include "tests/sim/planted.h"\n#line 1 "src/{file}"\n' + text


if __name__ == "__main__":
    if len(sys.argv) == 2 and sys.argv[1] == "--files":
        print(";".join(files()), end="")
    elif len(sys.argv) == 4:
        output = pathlib.Path(sys.argv[3])
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(copy_of(sys.argv[1], sys.argv[2]))
    else:
        sys.exit(__doc__)
