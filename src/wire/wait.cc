// SPDX-License-Identifier: Apache-2.0
// See wait.h. Most fields are absent in most waits: a wait is for cards, or for one other thing.
// Writer and Reader share the lists; only what older and newer daemons write differently has two
// functions. Names that only a newer daemon has are left out, and the rest of the wait is kept.
#include "wire/wait.h"

#include "wire/outline.h"
#include "wire/values.h"
#include "wire/wait_text.h"

namespace mete::wire {

template <>
struct TextOf<core::InTheWay> : Parsed<core::parse_in_the_way> {
  static constexpr std::string_view kWanted = "why not on a card";
};
template <>
struct TextOf<core::OverQuota::Limit> : Parsed<core::parse_quota_limit> {
  static constexpr std::string_view kWanted = "running, cards or bytes";
};

namespace {

using core::Wait;

// Jobs whose end would help; ids that cannot be read are left out.
void holders_field(Writer& list, const std::vector<core::JobId>& holders) {
  list.put("holders", holders);
}
void holders_field(Reader& list, std::vector<core::JobId>& holders) {
  for (const std::string& text : list.fields().texts("holders"))
    if (const Result<core::JobId> id = core::parse_job_id(text)) holders.push_back(*id);
}

}  // namespace

void fields_of(auto& list, Is<core::Holder> auto& holder) {
  list.must("job", holder.job);
  list.must("user", holder.user);
  list.opt("name", holder.name);
  list.must("bytes", holder.bytes);
  list.opt("whole", holder.whole);
  list.opt("parked", holder.parked);
  list.opt("ends_at", holder.ends_at);
}

void fields_of(auto& list, Is<core::Outside::Reserved> auto& reserved) {
  reservation_field(list, "id", reserved.id);
  list.must("until", reserved.until);
}

void fields_of(auto& list, Is<core::Outside> auto& outside) {
  list.opt("pid", outside.pid);
  list.opt("user", outside.user);
  list.must("bytes", outside.bytes);
  list.opt("who", outside.who);
  list.opt("job", outside.job);
  list.opt("reservation", object("the reservation", outside.reserved));
}

void fields_of(auto& list, Is<core::CardWait> auto& card) {
  list.must("index", card.index);
  list.must("why", known(card.why));
  list.opt("whole", card.whole);
  list.opt("needed_bytes", card.needed);
  list.opt("free_bytes", card.free);
  list.opt("kept_bytes", card.kept);
  list.put("holders", each("the holder", card.holders));
  list.put("foreign", each("what is outside", card.outside));
  list.opt("unlisted", card.unlisted);
  list.opt("detail", card.detail);
}

void fields_of(auto& list, Is<core::CardNeed> auto& need) {
  list.must("cards", need.cards);
  list.opt("bytes", need.bytes);
  gpu_field(list, "share", need.share);
  list.opt("card", need.card);
  list.opt("with_room", need.with_room);
}

namespace {

void room_fields(auto& list, auto& room) {
  list.opt("needs", object("the need", room.needs));
  list.put("cards", each("the card", room.cards));
  list.opt("unlisted_cards", room.unlisted);
  list.opt("machine", room.machine);
  list.opt("returns", room.returns);
}

}  // namespace

void fields_of(auto& list, Is<Wait::Behind> auto& behind) {
  list.must("job", behind.job);
  list.must("user", behind.user);
  room_fields(list, behind.room);
}

void fields_of(auto& list, Is<Wait::Later> auto& later) {
  list.put("jobs", later.jobs);
  list.must("from", later.from);
}

void fields_of(auto& list, Is<Wait::OfQuota> auto& quota) {
  list.must("user", quota.user);
  list.must("limit", quota.over.limit);
  list.must("now", quota.over.now);
  list.must("most", quota.over.most);
  list.must("more", quota.over.more);
}

void fields_of(auto& list, Is<Wait::OfArray> auto& array) {
  list.must("id", array.id);
  list.must("running", array.running);
  list.must("most", array.most);
}

void fields_of(auto& list, Is<Wait::Cpus> auto& cpus) {
  list.must("needed", cpus.needed);
  list.must("all", cpus.all);
}

namespace {

void data_fields(auto& list, auto& wait) {
  list.put("kind", known(wait.reason));
  holders_field(list, wait.holders);
  room_fields(list, wait.room);
  list.opt("behind", object("the job ahead", wait.behind));
  list.opt("parking", wait.parking);
  list.opt("later", object("what comes later", wait.later));
  list.opt("release", wait.release);
  list.opt("after", each("the dependency", wait.after));
  list.opt("more_after", wait.more_after);
  list.opt("until", wait.until);
  list.opt("failure", wait.failure);
  list.opt("quota", object("the quota", wait.quota));
  list.opt("array", object("the array", wait.array));
  list.opt("cpus", object("the CPUs", wait.cpus));
  list.opt("words", wait.words);
}

}  // namespace

std::string wait_json(const Wait& wait) {
  JsonText out;
  Writer list(out);
  out.open();
  data_fields(list, wait);
  out.close();
  return out.take();
}

Result<Wait> wait_from_json(std::string_view text) {
  const Result<Json> json = parse_json(text);
  if (!json) return json.error();
  Fields fields(*json, "the wait");
  Reader list(fields);
  Wait wait;
  data_fields(list, wait);
  if (!fields.ok()) return fields.error();
  return wait;
}

// Equal jobs share their wait, whose members are made once.
void wait_field(Writer& list, const core::SharedWait& wait,
                const std::optional<std::uint64_t>& place) {
  if (!wait) return;
  JsonText& out = list.out();
  out.key("wait").open();
  list.opt("place", place);
  out.raw(list.once(wait.get(), [&wait](Writer& members) {
    members.put("for", wait_text(*wait));
    data_fields(members, *wait);
  }));
  out.close();
}

void wait_field(Reader& list, core::SharedWait& wait, std::optional<std::uint64_t>& place) {
  if (!list.fields().has("wait") && !list.fields().outlines()) return;
  Wait read;
  list.opt("reason", known(read.reason));
  list.inside("wait", "the wait", [&](Reader& members) {
    std::string text;
    members.opt("place", place);
    members.must("for", text);
    data_fields(members, read);
    if (!members.fields().has("kind")) read.words = std::move(text);
  });
  wait = std::move(read);
}

// ---- remarks -----------------------------------------------------------------------------------

void fields_of(auto& list, Is<core::Remark::Idle> auto& idle) {
  list.must("since", idle.since);
  list.opt("until", idle.until);
  list.opt("parks", idle.parks);
}

void fields_of(auto& list, Is<core::Remark> auto& remark) {
  list.opt("said", remark.said);
  list.opt("idle", object("the idle time", remark.idle));
}

std::string remark_json(const core::Remark& remark) { return to_json(remark); }
Result<core::Remark> remark_from_json(std::string_view text) {
  return decode<core::Remark>(text, "the remark");
}

void remark_fields(Writer& list, const core::Remark& remark) {
  if (remark.empty()) return;
  list.put("remark", remark_text(remark));
  list.put("remarks", object("the remarks", remark));
}

void remark_fields(Reader& list, core::Remark& remark) {
  list.opt("remark", remark.said);
  if (!list.fields().has("remarks") && !list.fields().outlines()) return;
  remark = {};
  list.opt("remarks", object("the remarks", remark));
}

}  // namespace mete::wire
