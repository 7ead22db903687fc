// SPDX-License-Identifier: Apache-2.0
// See snapshot.h. One list of fields for each part; a job is JOB (view.cc) and what is observed of
// it.
#include "wire/snapshot.h"

#include <utility>

#include "wire/outline.h"
#include "wire/values.h"

namespace mete::wire {

// ---- jobs --------------------------------------------------------------------------------------

void fields_of(auto& list, Is<Snapshot::Process> auto& process) {
  list.must("pid", process.pid);
  list.opt("start_ticks", process.start_ticks);
  list.opt("parent", process.parent);
  list.opt("card", process.card);
  list.opt("name", process.name);
  list.opt("used_bytes", process.used);
  list.opt("utilisation_pct", process.utilisation_pct);
}

namespace {

void seen_fields(auto& list, auto& job) {
  list.opt("utilisation_pct", job.utilisation_pct);
  list.opt("runner", object("the process", job.runner));
  list.put("peak_bytes", job.peaks);
  list.put("processes", each("the process", job.processes));
}

}  // namespace

void fields_of(Writer& list, const Snapshot::Job& job) {
  job_fields(list, job.view, Words::kSome);
  seen_fields(list, job);
}
void fields_of(Reader& list, Snapshot::Job& job) {
  fields_of(list, job.view);
  seen_fields(list, job);
}

void fields_of(auto& list, Is<Snapshot::Queue::Entry> auto& entry) {
  list.must("id", entry.id);
  list.opt("place", entry.place);
}

void fields_of(auto& list, Is<Snapshot::Queue> auto& queue) {
  list.put("order", each("the place in the queue", queue.order));
  list.must("left_off", queue.left_off);
  list.put("depth", queue.depth);
}

// ---- history -----------------------------------------------------------------------------------

void fields_of(auto& list, Is<Series> auto& series) {
  list.must("step_s", series.step_s);
  list.must("last_at", series.last_at);
  list.put("values", series.values);
}

void fields_of(auto& list, Is<Past> auto& past) {
  list.put("utilisation_pct", each("the series", past.utilisation_pct));
  list.put("used_mib", each("the series", past.used_mib));
}

void fields_of(auto& list, Is<History> auto& history) {
  list.put("cards", entries("the history of a card", history.cards,
                            [](auto& of_one, auto& uuid, auto& past) {
                              of_one.must("uuid", uuid);
                              fields_of(of_one, past);
                            }));
  list.put("jobs",
           entries("the history of a job", history.jobs, [](auto& of_one, auto& id, auto& past) {
             of_one.must("id", id);
             fields_of(of_one, past);
           }));
}

// ---- the snapshot ------------------------------------------------------------------------------

void fields_of(auto& list, Is<Snapshot> auto& snapshot) {
  list.schema("mete.snapshot/1");
  list.must("at", snapshot.at);
  list.must("seq", snapshot.seq);
  list.opt("trouble", snapshot.trouble);
  list.opt("driver", snapshot.driver);
  list.must("daemon", object("the daemon's answer", snapshot.daemon));
  list.put("cards", each("the card", snapshot.cards));
  list.put("jobs", each("the job", snapshot.jobs));
  list.must("queue", object("the queue", snapshot.queue));
  list.opt("history", object("the history", snapshot.history));
}

std::string encode(const Snapshot& snapshot) {
  const std::size_t of_each = snapshot.history ? 4096 : 1024;
  return to_json(snapshot, Owner::kUnsaid, 4096 + snapshot.jobs.size() * of_each);
}

Result<Snapshot> decode_snapshot(std::string_view text) {
  return decode<Snapshot>(text, "the snapshot");
}

void carry_history(Snapshot& next, Snapshot&& before) {
  if (!next.history) next.history = std::move(before.history);
}

void outline_snapshot(Outlines& all) { outline<Snapshot>(all["snapshot"]); }

}  // namespace mete::wire
