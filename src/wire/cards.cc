// SPDX-License-Identifier: Apache-2.0
// See cards.h. One list of fields for each document.
#include "wire/cards.h"

#include "wire/outline.h"
#include "wire/values.h"

namespace mete::wire {

// ---- cards -------------------------------------------------------------------------------------

void fields_of(auto& list, Is<CardView::Link> auto& link) {
  list.must("to", link.to);
  list.tell("kind", std::string_view("nvlink"));
  list.must("count", link.count);
}

void fields_of(auto& list, Is<CardView::JobShare> auto& job) {
  list.must("id", job.id);
  list.must("user", job.user);
  list.must("bytes", job.bytes);
  list.opt("whole", job.whole);
  list.opt("used_bytes", job.used);
  list.opt("outside_bytes", job.outside);
  list.opt("name", job.name);
  list.opt("idle_since", job.idle_since);
  list.opt("over_bytes", job.over);
}

void fields_of(auto& list, Is<CardView::Foreign> auto& foreign) {
  list.opt("pid", foreign.pid);
  list.must("user", foreign.user);
  list.opt("name", foreign.name);
  list.opt("used_bytes", foreign.used);
  list.opt("utilisation_pct", foreign.utilisation_pct);
}

void fields_of(auto& list, Is<CardView> auto& card) {
  list.must("index", card.index);
  list.must("uuid", card.uuid);
  list.must("name", card.name);
  list.must("type", card.type);
  list.must("state", card.state);
  list.opt("unusable", card.unusable);
  list.opt("total_bytes", card.total);
  list.opt("capacity_bytes", card.capacity);
  list.put("granted_bytes", card.granted);
  list.opt("used_bytes", card.used);
  list.opt("foreign_bytes", card.foreign);
  list.opt("over_bytes", card.over);
  list.put("grantable_bytes", card.grantable);
  list.opt("utilisation_pct", card.utilisation_pct);
  list.opt("temperature_c", card.temperature_c);
  list.opt("power_w", card.power_w);
  list.opt("power_limit_w", card.power_limit_w);
  list.opt("reading_age_s", card.reading_age_s);
  list.opt("numa", card.numa);
  list.put("links", each("the link", card.links));
  list.put("jobs", each("the job", card.jobs));
  list.put("foreign", each("the process", card.foreign_list));
}
template void fields_of(Writer& list, const CardView& card);
template void fields_of(Reader& list, CardView& card);

void fields_of(auto& list, Is<CardsDocument> auto& document) {
  list.schema("mete.cards/1");
  list.must("at", document.at);
  list.opt("trouble", document.trouble);
  list.put("cards", each("the card", document.cards));
}

std::string encode(const CardsDocument& document) { return to_json(document); }
Result<CardsDocument> decode_cards(std::string_view text) {
  return decode<CardsDocument>(text, "the list of cards");
}

// ---- the daemon --------------------------------------------------------------------------------

void fields_of(auto& list, Is<DaemonView::Notify> auto& notify) {
  list.must("waiting", notify.waiting);
  list.must("sent", notify.sent);
  list.must("failed", notify.failed);
  list.must("dropped", notify.dropped);
}

void fields_of(auto& list, Is<DaemonView> auto& view) {
  list.must("version", view.version);
  list.must("pid", view.pid);
  list.must("mode", view.mode);
  list.must("socket", view.socket);
  list.must("state_dir", view.state_dir);
  list.must("uptime_s", view.uptime_s);
  list.must("policy", view.policy);
  list.inside("jobs", "the jobs", [&view](auto& jobs) {
    jobs.must("pending", view.pending);
    jobs.must("running", view.running);
  });
  list.opt("simulated", view.simulated);
  list.opt("trouble", view.trouble);
  list.opt("disk_full", view.disk_full);
  list.opt("idle_end_s", view.idle_end_s);
  list.opt("metrics", view.metrics);
  list.opt("metrics_trouble", view.metrics_trouble);
  list.put("escapes", view.escapes);
  list.put("notify", object("the notifications", view.notify));
  list.opt("config_trouble", view.config_trouble);
  list.opt("needs_restart", view.needs_restart);
}
template void fields_of(Writer& list, const DaemonView& view);
template void fields_of(Reader& list, DaemonView& view);

namespace {

struct DaemonDocument {
  WallTime at;
  DaemonView view;
};

}  // namespace

void fields_of(auto& list, Is<DaemonDocument> auto& document) {
  list.schema("mete.daemon/1");
  list.tell("at", document.at);
  list.tell("running", true);
  fields_of(list, document.view);
}

std::string encode(const DaemonView& view, WallTime at) {
  return to_json(DaemonDocument{at, view});
}

Result<DaemonView> decode_daemon(std::string_view text) {
  Result<DaemonDocument> document = decode<DaemonDocument>(text, "the daemon's answer");
  if (!document) return document.error();
  return std::move(document->view);
}

// ---- its configuration -------------------------------------------------------------------------

void fields_of(auto& list, Is<ReloadView::Change> auto& change) {
  list.must("key", change.key);
  list.opt("old", change.old_value);
  list.opt("new", change.new_value);
  list.must("origin", change.origin);
}

namespace {

struct ReloadDocument {
  WallTime at;
  ReloadView view;
};

}  // namespace

void fields_of(auto& list, Is<ReloadDocument> auto& document) {
  list.schema("mete.reload/1");
  list.tell("at", document.at);
  list.put("files", document.view.files);
  list.put("applied", each("the change", document.view.applied));
  list.put("restart", each("the change", document.view.restart));
}

std::string encode(const ReloadView& view, WallTime at) {
  return to_json(ReloadDocument{at, view});
}

Result<ReloadView> decode_reload(std::string_view text) {
  Result<ReloadDocument> document = decode<ReloadDocument>(text, "the daemon's answer");
  if (!document) return document.error();
  return std::move(document->view);
}

// ---- copies of its state -----------------------------------------------------------------------

void fields_of(auto& list, Is<BackupRequest> auto& request) {
  list.must("path", exact(request.path));
}

std::string encode(const BackupRequest& request) { return to_json(request); }

Result<BackupRequest> decode_backup_request(std::string_view text) {
  return decode<BackupRequest>(text, "the request", Unknown::kRefused);
}

namespace {

struct BackupDocument {
  WallTime at;
  BackupView view;
};

}  // namespace

void fields_of(auto& list, Is<BackupDocument> auto& document) {
  list.schema("mete.backup/1");
  list.tell("at", document.at);
  list.must("path", document.view.path);
  list.must("bytes", document.view.bytes);
  list.must("last_seq", document.view.last_seq);
}

std::string encode(const BackupView& view, WallTime at) {
  return to_json(BackupDocument{at, view});
}

Result<BackupView> decode_backup(std::string_view text) {
  Result<BackupDocument> document = decode<BackupDocument>(text, "the daemon's answer");
  if (!document) return document.error();
  return std::move(document->view);
}

std::string text_of(const BackupView& view) {
  return view.path + ": " + to_string(Bytes::from_bytes(view.bytes)) + ", all up to event " +
         std::to_string(view.last_seq);
}

void outline_cards(Outlines& all) {
  outline<CardsDocument>(all["cards"]);
  outline<DaemonDocument>(all["daemon"]);
  outline<ReloadDocument>(all["reload"]);
  outline<BackupDocument>(all["backup"]);
  outline<BackupRequest>(all["BackupRequest"]);
}

}  // namespace mete::wire
