// SPDX-License-Identifier: Apache-2.0
// The smaller values of core as JSON: what several documents and the log have in common. put_*()
// writes the members of an object that is open, or a whole value where it says so; *_from() reads
// what was written. Internal to wire/.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/job/job.h"
#include "core/order/quota.h"
#include "core/order/reservation.h"
#include "wire/cards.h"
#include "wire/fields.h"
#include "wire/job.h"
#include "wire/json_text.h"

namespace mete::wire {

// A card and a daemon as their documents have them.
Json card_json(const CardView& card);
Result<CardView> card_from(const Json& json);
Json daemon_json(const DaemonView& view);
Result<DaemonView> daemon_from(const Json& json);

// Whose a job is: the log says so, a request does not, since that is what the socket is asked for.
enum class Owner { kSaid, kUnsaid };

void put_request(JsonText& out, const core::Request& request);
Result<core::Request> request_from(const Json& json, Unknown unknown = Unknown::kIgnored);
// Its members, in an object that has others beside them.
core::Request request_of(Fields& fields);
void put_gpu_if(JsonText& out, std::string_view key, const std::optional<core::GpuRequest>& gpu);
std::optional<core::GpuRequest> gpu_if(Fields& fields, std::string_view key);
// "KEY_written", which is there when the canonical text of KEY is not what somebody wrote.
void read_written(Fields& fields, std::string_view key, core::GpuRequest& gpu);
std::optional<core::Query> where_if(Fields& fields, std::string_view key);

// The whole object.
void put_spec(JsonText& out, const core::JobSpec& spec, Owner owner);
Result<core::JobSpec> spec_from(const Json& json, Owner owner);

Result<RunRequest> run_request_from(const Json& json);

// The member "park".
void put_door(JsonText& out, const ParkDoor& door);
std::optional<ParkDoor> door_if(Fields& fields);

void put_process_if(JsonText& out, std::string_view key,
                    const std::optional<core::ProcessRef>& process);
void put_process(JsonText& out, const core::ProcessRef& process);
Result<core::ProcessRef> process_from(const Json& json);
std::optional<core::ProcessRef> process_if(Fields& fields, std::string_view key);

void put_card(JsonText& out, const core::GrantedCard& card);
void put_cards(JsonText& out, std::string_view key, const std::vector<core::GrantedCard>& cards);
std::vector<core::GrantedCard> cards_from(Fields& fields, std::string_view key);

void put_bytes_list(JsonText& out, std::string_view key, const std::vector<Bytes>& list);
std::vector<Bytes> bytes_list_from(Fields& fields, std::string_view key);

// Whole objects.
void put_park(JsonText& out, const core::Park& park);
Result<core::Park> park_from(const Json& json);
core::ParkCause cause_from(Fields& fields, std::string_view key);
void put_refusal(JsonText& out, const core::ParkRefusal& refusal);
Result<core::ParkRefusal> refusal_from(const Json& json);

// The members, in an object that is open.
void put_escape(JsonText& out, const core::Escape& escape);
core::Escape escape_of(Fields& fields);
// The member "escapes", without when there is none.
void put_escapes(JsonText& out, const core::Job& job);
std::vector<core::Escape> escapes_from(Fields& fields);
void put_idle(JsonText& out, const core::IdleSpan& span);
core::IdleSpan idle_of(Fields& fields);

void put_exit(JsonText& out, const core::Exit& exit);
Result<core::Exit> exit_from(const Json& json);
void put_exit_if(JsonText& out, std::string_view key, const std::optional<core::Exit>& exit);
std::optional<core::Exit> exit_if(Fields& fields, std::string_view key);

// An object of which `made` is told to nobody but the log.
void put_forecast(JsonText& out, const core::Forecast& forecast, Owner owner);
core::Forecast forecast_from(Fields& fields, std::string_view key, Owner owner);

// {"id","when"} each.
void put_after(JsonText& out, std::string_view key, const std::vector<core::After>& after);
std::vector<core::After> after_from(Fields& fields, std::string_view key);
core::After after_of(const Json& json, Fields& fields);

void put_quota(JsonText& out, const core::Quota& quota);
core::Quota quota_from(Fields& fields);
void put_reservation(JsonText& out, const core::Reservation& reservation);
Result<core::Reservation> reservation_from(const Json& json);
std::uint64_t reservation_id_from(Fields& fields, std::string_view key);

// A job as its user sees it: the members of JOB. What the spec has of it is read into `spec`, for
// others to add to before it is shared.
// How much of the words that its user gave it: in lists, which may be of thousands, not all.
enum class Words { kAll, kSome, kNone };
void put_job(JsonText& out, const JobView& view, Words words = Words::kAll);
JobView job_from(Fields& fields, core::JobSpec& spec);
Result<JobView> view_from(const Json& json);
// The member "jobs".
void put_jobs(JsonText& out, const std::vector<JobView>& jobs, Words words);
// The command as lists have it: of one that is longer than kListedCommand bytes the beginning, and
// "…".
inline constexpr std::size_t kListedCommand = 256;
bool is_listed_whole(const std::vector<std::string>& command);
std::vector<std::string> listed_command(const std::vector<std::string>& command,
                                        std::size_t bytes = kListedCommand);
Result<std::vector<JobView>> jobs_from(Fields& fields);

void put_id(JsonText& out, std::string_view key, core::JobId id);
void append_id(std::string& out, core::JobId id);
core::JobId id_from(Fields& fields, std::string_view key);
std::optional<core::JobId> id_if(Fields& fields, std::string_view key);
core::JobState state_from(Fields& fields, std::string_view key);
core::Outcome outcome_from(Fields& fields, std::string_view key);
// A newer daemon's is nothing that we know.
std::optional<core::Reason> reason_of(std::string_view text);

// Nothing here has run for longer than a machine lives: a moment before 1970 helps nobody.
std::uint64_t ago_from(Fields& fields);

}  // namespace mete::wire
