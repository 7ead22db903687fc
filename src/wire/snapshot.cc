// SPDX-License-Identifier: Apache-2.0
// See snapshot.h.
#include "wire/snapshot.h"

#include <utility>

#include "wire/values.h"

namespace mete::wire {

namespace {

// ---- writing -----------------------------------------------------------------------------------

template <class Value>
void put_or_null(JsonText& out, const std::optional<Value>& value) {
  if (value)
    out.value(*value);
  else
    out.raw("null");
}

void put_process(JsonText& out, const Snapshot::Process& process) {
  out.open();
  out.put("pid", process.pid);
  if (process.start_ticks != 0) out.put("start_ticks", process.start_ticks);
  if (process.parent != 0) out.put("parent", process.parent);
  out.put_if("card", process.card);
  out.put_if("name", std::string_view(process.name));
  out.put_if("used_bytes", process.used);
  out.put_if("utilisation_pct", process.utilisation_pct);
  out.close();
}

void put_snapshot_job(JsonText& out, const Snapshot::Job& job) {
  out.open();
  put_job(out, job.view, Words::kSome);
  out.put_if("utilisation_pct", job.utilisation_pct);
  put_process_if(out, "runner", job.runner);
  out.key("peak_bytes").open_list();
  for (const std::optional<Bytes>& peak : job.peaks) put_or_null(out, peak);
  out.close_list();
  out.key("processes").open_list();
  for (const Snapshot::Process& process : job.processes) put_process(out, process);
  out.close_list();
  out.close();
}

void put_queue(JsonText& out, const Snapshot::Queue& queue) {
  out.key("queue").open();
  out.key("order").open_list();
  for (const Snapshot::Queue::Entry& entry : queue.order) {
    out.open();
    put_id(out, "id", entry.id);
    out.put_if("place", entry.place);
    out.close();
  }
  out.close_list();
  out.put("left_off", queue.left_off);
  out.put("depth", queue.depth);
  out.close();
}

void put_all_series(JsonText& out, std::string_view key, const std::vector<Series>& all) {
  out.key(key).open_list();
  for (const Series& series : all) {
    out.open();
    out.put("step_s", series.step_s);
    out.put("last_at", series.last_at);
    out.key("values").open_list();
    for (const auto& value : series.values) put_or_null(out, value);
    out.close_list();
    out.close();
  }
  out.close_list();
}

void put_past(JsonText& out, const Past& past) {
  put_all_series(out, "utilisation_pct", past.utilisation_pct);
  put_all_series(out, "used_mib", past.used_mib);
}

void put_history(JsonText& out, const History& history) {
  out.key("history").open();
  out.key("cards").open_list();
  for (const auto& [uuid, past] : history.cards) {
    out.open();
    out.put("uuid", uuid);
    put_past(out, past);
    out.close();
  }
  out.close_list();
  out.key("jobs").open_list();
  for (const auto& [id, past] : history.jobs) {
    out.open();
    put_id(out, "id", id);
    put_past(out, past);
    out.close();
  }
  out.close_list();
  out.close();
}

// ---- reading -----------------------------------------------------------------------------------

Result<Snapshot::Process> process_of(const Json& json) {
  Fields fields(json, "the process");
  Snapshot::Process process;
  process.pid = fields.number<std::int32_t>("pid");
  process.start_ticks = fields.number_if("start_ticks").value_or(0);
  process.parent = fields.number_if<std::int32_t>("parent").value_or(0);
  process.card = fields.number_if<std::uint32_t>("card");
  process.name = fields.text_if("name").value_or("");
  process.used = fields.bytes_if("used_bytes");
  process.utilisation_pct = fields.number_if<unsigned>("utilisation_pct");
  if (!fields.ok()) return fields.error();
  return process;
}

Result<Snapshot::Job> snapshot_job_from(const Json& json) {
  Fields fields(json, "the job");
  core::JobSpec spec;
  Snapshot::Job job;
  job.view = job_from(fields, spec);
  job.view.job.spec = std::move(spec);
  job.utilisation_pct = fields.number_if<unsigned>("utilisation_pct");
  job.runner = process_if(fields, "runner");
  for (const Json& peak : fields.list("peak_bytes")) {
    job.peaks.emplace_back();
    if (peak.is_number_unsigned())
      job.peaks.back() = Bytes::from_bytes(peak.get<std::uint64_t>());
    else if (!peak.is_null())
      fields.fail("peak_bytes", "a list of whole numbers");
  }
  for (const Json& process : fields.list("processes"))
    job.processes.push_back(fields.take(process_of(process)));
  if (!fields.ok()) return fields.error();
  return job;
}

Snapshot::Queue queue_from(Fields& outer) {
  Fields fields(outer.child("queue"), "the queue");
  Snapshot::Queue queue;
  for (const Json& element : fields.list("order")) {
    Fields entry(element, "the place in line");
    queue.order.push_back({id_from(entry, "id"), entry.number_if("place")});
    if (!entry.ok()) fields.fail(entry.error());
  }
  queue.left_off = fields.number("left_off");
  queue.depth = fields.counts("depth");
  if (!fields.ok()) outer.fail(fields.error());
  return queue;
}

std::vector<Series> all_series_from(Fields& outer, std::string_view key) {
  std::vector<Series> all;
  for (const Json& element : outer.list(key)) {
    Fields fields(element, "the series");
    Series series;
    series.step_s = fields.number<std::uint32_t>("step_s");
    series.last_at = fields.time("last_at");
    const std::vector<Json>& values = fields.list("values");
    series.values.reserve(values.size());
    for (const Json& value : values) {
      series.values.emplace_back();
      if (value.is_number_unsigned() && std::in_range<std::uint32_t>(value.get<std::uint64_t>()))
        series.values.back() = value.get<std::uint32_t>();
      else if (!value.is_null())
        fields.fail("values", "a list of whole numbers");
    }
    if (!fields.ok()) outer.fail(fields.error());
    all.push_back(std::move(series));
  }
  return all;
}

Past past_from(Fields& fields) {
  return {all_series_from(fields, "utilisation_pct"), all_series_from(fields, "used_mib")};
}

History history_from(Fields& outer) {
  Fields fields(outer.child("history"), "the history");
  History history;
  for (const Json& element : fields.list("cards")) {
    Fields of_card(element, "the history of a card");
    history.cards[of_card.text("uuid")] = past_from(of_card);
    if (!of_card.ok()) fields.fail(of_card.error());
  }
  for (const Json& element : fields.list("jobs")) {
    Fields of_job(element, "the history of a job");
    history.jobs[id_from(of_job, "id")] = past_from(of_job);
    if (!of_job.ok()) fields.fail(of_job.error());
  }
  if (!fields.ok()) outer.fail(fields.error());
  return history;
}

}  // namespace

std::string encode(const Snapshot& snapshot) {
  JsonText out(4096 + snapshot.jobs.size() * (snapshot.history ? 4096 : 1024));
  out.open();
  out.put("schema", "mete.snapshot/1");
  out.put("at", snapshot.at);
  out.put("seq", snapshot.seq);
  out.put_if("trouble", std::string_view(snapshot.trouble));
  out.put_if("driver", std::string_view(snapshot.driver));
  out.key("daemon").raw(write_json(daemon_json(snapshot.daemon)));
  out.key("cards").open_list();
  for (const CardView& card : snapshot.cards) out.raw(write_json(card_json(card)));
  out.close_list();
  out.key("jobs").open_list();
  for (const Snapshot::Job& job : snapshot.jobs) put_snapshot_job(out, job);
  out.close_list();
  put_queue(out, snapshot.queue);
  if (snapshot.history) put_history(out, *snapshot.history);
  out.close();
  return out.take();
}

Result<Snapshot> decode_snapshot(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the snapshot");
  Snapshot snapshot;
  snapshot.at = fields.time("at");
  snapshot.seq = fields.number("seq");
  snapshot.trouble = fields.text_if("trouble").value_or("");
  snapshot.driver = fields.text_if("driver").value_or("");
  snapshot.daemon = fields.take(daemon_from(fields.child("daemon")));
  for (const Json& card : fields.list("cards"))
    snapshot.cards.push_back(fields.take(card_from(card)));
  for (const Json& job : fields.list("jobs"))
    snapshot.jobs.push_back(fields.take(snapshot_job_from(job)));
  snapshot.queue = queue_from(fields);
  if (fields.has("history")) snapshot.history = history_from(fields);
  if (!fields.ok()) return fields.error();
  return snapshot;
}

void carry_history(Snapshot& next, Snapshot&& before) {
  if (!next.history) next.history = std::move(before.history);
}

}  // namespace mete::wire
