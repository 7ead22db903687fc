// SPDX-License-Identifier: Apache-2.0
// `mete reserve`: cards reserved for a user, for a future time. Without arguments it lists
// reservations; with a share and times it makes one; `rm ID...` removes them. make() turns the
// options into a request (--until and --for relative to --from), and the daemon decides whether the
// cards are free then.
#include <array>

#include "base/moment.h"
#include "base/text.h"
#include "base/time_words.h"
#include "cli/job_words.h"
#include "cli/named_jobs.h"
#include "cli/queue_tables.h"
#include "cli/subword.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "core/job/state.h"
#include "runner/daemon_client.h"
#include "seam/clock.h"
#include "wire/queue.h"

namespace mete::cli {

namespace {

constexpr std::array kReserveOptions{
    kGpuOption,
    kDevicesOption,
    kGpuTypeOption,
    OptionSpec{"--user", "NAME", "the user whose jobs may use the cards"},
    OptionSpec{"--from", "TIME",
               "begin of the reservation, in local time: 18:00, tomorrow 8:00, 2026-12-01 09:00, "
               "now+2h (default: now)"},
    OptionSpec{"--for", "DURATION", "length of the reservation: 4h, 90m, 2d"},
    OptionSpec{"--until", "TIME", "end of the reservation, instead of --for"},
    kOutputOption,
};

Result<WallTime> end_of(const Parsed& parsed, WallTime from) {
  const std::string* length = parsed.find("--for");
  const std::string* until = parsed.find("--until");
  if ((length != nullptr) == (until != nullptr))
    return Error::invalid(length != nullptr ? "--for and --until contradict each other"
                                            : "how long is not said")
        .with_hint("--for 4h, or --until 22:00");
  if (until != nullptr) {
    // "22:00" is the first one after the start.
    Result<WallTime> moment = base::parse_moment(*until, from);
    if (!moment) return std::move(moment).error().within("--until");
    return moment;
  }
  const Result<std::uint64_t> seconds = base::parse_duration(*length);
  if (!seconds) return Error(seconds.error()).within("--for");
  if (*seconds > core::kMaxTimeS)
    return Error::invalid("--for " + *length + ": a reservation is for ten years at most");
  return WallTime{from.ms + static_cast<std::int64_t>(*seconds) * 1000};
}

Result<wire::ReserveRequest> parse_reservation(const Parsed& parsed, WallTime now) {
  wire::ReserveRequest request;
  const std::string* user = parsed.find("--user");
  if (user == nullptr || user->empty())
    return Error::invalid("for whom is not said")
        .with_hint("mete reserve --gpu 2 --from 18:00 --for 4h --user carol");
  request.user = *user;
  Result<core::Request> wanted = parse_request(parsed);
  if (!wanted) return std::move(wanted).error();
  if (!wanted->gpu && wanted->devices.empty())
    return Error::invalid("which cards is not said").with_hint("--gpu 2, or --devices 0,1");
  request.request = *std::move(wanted);
  request.from = now;
  if (const std::string* from = parsed.find("--from"); from != nullptr) {
    Result<WallTime> moment = base::parse_moment(*from, now);
    if (!moment) return std::move(moment).error().within("--from");
    request.from = *moment;
  }
  const Result<WallTime> until = end_of(parsed, request.from);
  if (!until) return until.error();
  request.until = *until;
  return request;
}

int print(const Result<std::string>& body, const Output& output) {
  const Result<wire::ReservationsDocument> document =
      body ? wire::decode_reservations(*body) : body.error();
  if (!document) return output.fail(document.error());
  if (output.json())
    output.data(*body);
  else if (document->reservations.empty())
    output.say("nothing is reserved");
  else
    output.data(reservation_table(*document, stdout_width()));
  return kExitOk;
}

int make(const Parsed& parsed, const Output& output) {
  const Result<wire::ReserveRequest> request =
      parse_reservation(parsed, seam::system_clock().wall());
  if (!request) return output.fail(request.error());
  Result<runner::DaemonClient> client =
      runner::DaemonClient::open(runner::DaemonClient::Start::kIfNeeded);
  if (!client) return output.fail(client.error());
  return print(client->call("POST", "/v1/reservations", wire::encode(*request)), output);
}

int list(const Output& output) {
  Result<runner::DaemonClient> client = runner::DaemonClient::open_for_jobs();
  if (!client && client.error().code == ErrorCode::kNotFound) {
    if (output.json())
      output.data(wire::encode(wire::ReservationsDocument{seam::system_clock().wall(), {}}));
    output.say("no daemon runs, so nothing is reserved");
    return kExitOk;
  }
  if (!client) return output.fail(client.error());
  return print(client->call("GET", "/v1/reservations"), output);
}

int remove(const std::vector<std::string>& ids, const Output& output) {
  if (ids.empty())
    return output.fail(Error::invalid("which reservation is not said")
                           .with_hint("mete reserve rm 3; mete reserve lists them"));
  Result<runner::DaemonClient> client = runner::DaemonClient::open_for_jobs();
  if (!client) return output.fail(client.error());
  Failures failures(output);
  std::string last;
  for (const std::string& id : ids) {
    if (!base::parse_uint(id)) {
      failures.add(Error::invalid(base::quote(id) + " is the number of no reservation")
                       .with_hint("mete reserve lists them"));
      continue;
    }
    Result<std::string> body = client->call("DELETE", "/v1/reservations/" + id);
    if (!body) {
      failures.add(body.error());
      if (client->silent()) break;  // each of the others would wait as long
      continue;
    }
    last = *std::move(body);
    if (!output.json()) output.say("reservation " + id + " is taken back");
  }
  if (output.json() && !last.empty()) output.data(last);
  return failures.exit_code();
}

int run_reserve(const Parsed& parsed, const Output& output) {
  const bool words =
      !parsed.options.empty() && !(parsed.options.size() == 1 && parsed.has(kOutputOption.name));
  if (parsed.rest.empty()) return words ? make(parsed, output) : list(output);
  if (const Result<std::string> word = sub_word("reserve", parsed.rest, {"rm"}); !word)
    return output.fail(word.error());
  return remove({parsed.rest.begin() + 1, parsed.rest.end()}, output);
}

}  // namespace

const Verb kReserveVerb{
    "reserve",
    "reserve cards for a user, for a period of time",
    "mete reserve [--gpu SHARE --user NAME --for DURATION [--from TIME]]\n"
    "mete reserve rm ID...",
    "mete reserve --gpu 2 --from 18:00 --for 4h --user carol\n"
    "mete reserve --devices 0 --from \"tomorrow 8:00\" --for 4h --user bob\n"
    "mete reserve                # list the reservations\n"
    "mete reserve rm 3",
    "mete chooses the cards when the reservation is made. Jobs of other users start on these cards "
    "only if they end before the reservation begins, according to their --time or to the run times "
    "that mete has learned. Running jobs are not ended. Times are local; add a zone when a clock "
    "change makes a time ambiguous. Only administrators may make and remove reservations; all "
    "users may list them.",
    kReserveOptions,
    Rest::kWords,
    run_reserve,
    {"rm"},
};

}  // namespace mete::cli
