// SPDX-License-Identifier: Apache-2.0
// `mete quota`: the limits of each user. `set` changes the named limits and leaves the others;
// `none` removes one; `rm` removes all of a user's own limits, so that the default applies. A
// change reads the current limits from the daemon, applies the options to them and sends the whole
// quota back.
#include <array>

#include "base/bytes.h"
#include "base/text.h"
#include "cli/queue_tables.h"
#include "cli/subword.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "runner/daemon_client.h"
#include "wire/queue.h"

namespace mete::cli {

namespace {

constexpr std::array kQuotaOptions{
    OptionSpec{"--user", "NAME", "the user that the limits apply to"},
    OptionSpec{"--default", "", "limits for users without limits of their own"},
    OptionSpec{"--cards", "N", "cards in use at a time; a card counts once for each job on it"},
    OptionSpec{"--gpu-bytes", "SIZE", "GPU memory in use at a time, such as 80G"},
    OptionSpec{"--running", "N", "running jobs at a time"},
    OptionSpec{"--jobs", "N", "jobs that have not ended; mete submit refuses more"},
    OptionSpec{"--disk", "SIZE", "disk space for the logs that mete keeps"},
    kOutputOption,
};

Result<void> take_number(const Parsed& parsed, std::string_view name,
                         std::optional<std::uint32_t>& limit) {
  const std::string* text = parsed.find(name);
  if (text == nullptr) return {};
  if (*text == "none") {
    limit.reset();
    return {};
  }
  const Result<std::uint64_t> number = base::parse_uint(*text);
  if (!number || *number > UINT32_MAX)
    return Error::invalid(std::string(name) + " " + base::quote(*text) + " is no number")
        .with_hint("write " + std::string(name) + " 4, or none for no limit");
  limit = static_cast<std::uint32_t>(*number);
  return {};
}

Result<void> take_size(const Parsed& parsed, std::string_view name, std::optional<Bytes>& limit) {
  const std::string* text = parsed.find(name);
  if (text == nullptr) return {};
  if (*text == "none") {
    limit.reset();
    return {};
  }
  const Result<Bytes> size = base::parse_bytes(*text);
  if (!size) return Error(size.error()).within(name);
  limit = *size;
  return {};
}

Result<void> take_limits(const Parsed& parsed, core::Quota& quota) {
  for (const Result<void>& taken :
       {take_number(parsed, "--cards", quota.cards), take_size(parsed, "--gpu-bytes", quota.bytes),
        take_number(parsed, "--running", quota.running), take_number(parsed, "--jobs", quota.jobs),
        take_size(parsed, "--disk", quota.disk)})
    if (!taken) return taken.error();
  return {};
}

bool names_a_limit(const Parsed& parsed) {
  for (const std::string_view name : {"--cards", "--gpu-bytes", "--running", "--jobs", "--disk"})
    if (parsed.has(name)) return true;
  return false;
}

core::Quota own_quota(const wire::QuotaDocument& document, const std::string& user) {
  if (user.empty()) return document.everybody;
  for (const wire::QuotaDocument::User& known : document.users)
    if (known.user == user) return known.own;
  return {};
}

// The user whose limits are meant; "": the default for all users.
Result<std::string> whose(const Parsed& parsed) {
  const std::string* user = parsed.find("--user");
  if ((user != nullptr) == parsed.has("--default"))
    return Error::invalid(user != nullptr ? "--user and --default contradict each other"
                                          : "whose limits is not said")
        .with_hint("--user alice, or --default for everybody who has none of their own");
  if (user == nullptr) return std::string();
  if (user->empty()) return Error::invalid("--user is empty").with_hint("--user alice");
  return *user;
}

Result<std::string> change(runner::DaemonClient& client, const Parsed& parsed, bool remove) {
  const Result<std::string> user = whose(parsed);
  if (!user) return user.error();
  if (remove == names_a_limit(parsed))
    return remove ? Error::invalid("mete quota rm takes all limits away, and needs none")
                        .with_hint("mete quota set --user NAME --cards none takes one away")
                  : Error::invalid("which limit is not said")
                        .with_hint("--cards, --gpu-bytes, --running, --jobs or --disk");
  wire::QuotaRequest request{*user, {}};
  if (!remove) {
    const Result<std::string> body = client.call("GET", "/v1/quotas");
    const Result<wire::QuotaDocument> now = body ? wire::decode_quota(*body) : body.error();
    if (!now) return now.error();
    request.quota = own_quota(*now, *user);
    if (Result<void> r = take_limits(parsed, request.quota); !r) return std::move(r).error();
  }
  return client.call("POST", "/v1/quotas", wire::encode(request));
}

int run_quota(const Parsed& parsed, const Output& output) {
  std::string word = "list";
  if (!parsed.rest.empty()) {
    const Result<std::string> known = sub_word("quota", parsed.rest, {"set", "rm"});
    if (!known) return output.fail(known.error());
    word = *known;
  } else if (!parsed.options.empty() && !(parsed.options.size() == 1 && parsed.has("--output"))) {
    return output.fail(Error::invalid("what shall become of these limits is not said")
                           .with_hint("mete quota set --user NAME ..."));
  }
  if (const Result<void> r = no_more_than(1, parsed.rest); !r) return output.fail(r.error());
  // Limits concern future jobs too: setting them starts a daemon if none runs.
  Result<runner::DaemonClient> client =
      word == "list" ? runner::DaemonClient::open_for_jobs()
                     : runner::DaemonClient::open(runner::DaemonClient::Start::kIfNeeded);
  if (!client) return output.fail(client.error(), exit_code_of_failure(client.error().code));
  const Result<std::string> body =
      word == "list" ? client->call("GET", "/v1/quotas") : change(*client, parsed, word == "rm");
  const Result<wire::QuotaDocument> document = body ? wire::decode_quota(*body) : body.error();
  if (!document) return output.fail(document.error());
  output.data(output.json() ? *body : quota_table(*document, stdout_width()));
  return kExitOk;
}

}  // namespace

const Verb kQuotaVerb{
    "quota",
    "show or set the limits of each user",
    "mete quota [set|rm --user NAME|--default [limits]] [-o json]",
    "mete quota\n"
    "mete quota set --user alice --cards 2 --gpu-bytes 80G\n"
    "mete quota set --default --running 4 --jobs 100\n"
    "mete quota set --user alice --cards none    # use the default for cards\n"
    "mete quota rm --user alice",
    "A job over its user's limit waits (reason: quota). A job over --jobs or --disk is refused by "
    "mete submit. set changes the limits that it names and keeps the others. If a user has no "
    "limit of their own, the default applies. Only administrators may set limits; each user sees "
    "their own.",
    kQuotaOptions,
    Rest::kWords,
    run_quota,
    {"set", "rm"},
};

}  // namespace mete::cli
