// SPDX-License-Identifier: Apache-2.0
// See sweep_client.h.
#include "cli/sweep_client.h"

#include <pwd.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "cli/sweep_document.h"
#include "net/http.h"

namespace mete::cli {

Result<SweepRef> sweep_ref(const Parsed& parsed, const std::string& name) {
  constexpr std::string_view kFine =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (name.empty() || name.size() > core::sweep::kMaxSweepName || name.front() == '.' ||
      name.find_first_not_of(kFine) != std::string::npos)
    return Error::not_found("there is no sweep " + base::quote(name))
        .with_hint("mete sweep ls lists your sweeps");
  const std::string* user = parsed.find("--user");
  return SweepRef{name, user == nullptr ? "" : *user};
}

std::string sweep_target(const SweepRef& ref, std::string_view rest, std::string_view query) {
  std::string target = "/v1/sweeps/" + net::percent_encode(ref.name) + std::string(rest);
  if (!query.empty()) target += "?" + std::string(query);
  if (!ref.user.empty())
    target += (query.empty() ? "?user=" : "&user=") + net::percent_encode(ref.user);
  return target;
}

std::string words_of(const SweepRef& ref) {
  return ref.name + (ref.user.empty() ? "" : " -u " + ref.user);
}

Result<runner::DaemonClient> open_for_sweeps(const std::string& name) {
  Result<runner::DaemonClient> client = runner::DaemonClient::open_for_jobs();
  if (client || client.error().code != ErrorCode::kNotFound || name.empty()) return client;
  Error error = std::move(client).error();
  error.message = "no daemon runs, so there is no sweep " + base::quote(name);
  return error;
}

Result<wire::SweepRow> row_in(const Result<std::string>& body) {
  if (!body) return body.error();
  Result<wire::SweepsDocument> document = wire::decode_sweeps(*body);
  if (!document) return std::move(document).error();
  if (document->sweeps.size() != 1)
    return Error::corrupt("the daemon's answer is not understood")
        .with_evidence(std::to_string(document->sweeps.size()) + " sweeps in place of one")
        .with_hint("mete daemon restart");
  return std::move(document->sweeps.front());
}

Result<wire::SweepDocument> document_in(const Result<std::string>& body) {
  if (!body) return body.error();
  Result<wire::SweepDocument> document = wire::decode_sweep(*body);
  if (document) settle_values(*document);
  return document;
}

Result<launch::Identity> sweeps_owner(const wire::SweepDocument& document) {
  if (geteuid() != 0) return launch::Identity();
  if (const passwd* user = getpwnam(document.user.c_str()); user != nullptr)
    return launch::identity_of(user->pw_uid);
  // A user without a name is known by its number.
  const Result<std::uint64_t> uid = base::parse_uint(document.user);
  if (uid && *uid > 0 && *uid < static_cast<uid_t>(-1))
    return launch::identity_of(static_cast<uid_t>(*uid));
  return Error::not_found("there is no user " + base::quote(document.user));
}

Result<void> remove_files(const wire::SweepDocument& document) {
  const std::filesystem::path folder = std::filesystem::path(document.results).parent_path();
  if (folder.filename() != document.name || folder.parent_path().filename() != "sweeps") return {};
  const Result<launch::Identity> owner = sweeps_owner(document);
  if (!owner) return owner.error();
  const Result<launch::RightsOf> rights = launch::RightsOf::take(*owner);
  if (!rights) return rights.error();
  const std::filesystem::path aside =
      folder.parent_path() / (".removed-" + document.name + "-" + std::to_string(getpid()));
  std::error_code error;
  std::filesystem::rename(folder, aside, error);
  if (error == std::errc::no_such_file_or_directory) return {};
  if (!error) std::filesystem::remove_all(aside, error);
  if (error) return Error::from_errno("remove " + folder.string(), error.value());
  return {};
}

}  // namespace mete::cli
