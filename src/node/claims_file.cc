// SPDX-License-Identifier: Apache-2.0
// See claims_file.h.
#include "node/claims_file.h"

#include <algorithm>
#include <tuple>

#include "abi/grant.h"
#include "base/text.h"
#include "seam/driver.h"

namespace mete::node {

namespace {

constexpr std::string_view kPrefix = "mete-claims.";
constexpr std::string_view kFirstLine = "mete-claims 1 ";

bool is_word(std::string_view text, std::string_view also) {
  return !text.empty() && text.size() <= 32 && std::all_of(text.begin(), text.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           also.find(c) != std::string_view::npos;
  });
}
bool is_job(std::string_view text) { return is_word(text, "-_"); }
bool is_user(std::string_view text) { return is_word(text, "-_.@+$"); }

// Canonical numbers only: "007" and "7" would be two names of one file.
std::optional<std::uint64_t> number(std::string_view text, std::uint64_t most) {
  const Result<std::uint64_t> value = base::parse_uint(text);
  if (!value || *value > most || (text.size() > 1 && text.front() == '0')) return std::nullopt;
  return *value;
}

std::optional<core::ProcessRef> process(std::string_view pid, std::string_view start) {
  const std::optional<std::uint64_t> number_of = number(pid, INT32_MAX);
  const std::optional<std::uint64_t> ticks = number(start, UINT64_MAX);
  if (!number_of || !ticks) return std::nullopt;
  return core::ProcessRef{static_cast<std::int32_t>(*number_of), *ticks};
}

std::optional<Claim> parse_claim(const std::vector<std::string_view>& words) {
  if (words.size() != 8 || words[0] != "claim") return std::nullopt;
  const std::optional<seam::UuidBytes> uuid = seam::parse_uuid(words[1]);
  const std::optional<std::uint64_t> bytes = number(words[2], UINT64_MAX);
  const std::optional<core::ProcessRef> runner = process(words[5], words[6]);
  if (!uuid || !bytes || !runner || !is_job(words[7])) return std::nullopt;
  if (words[3] != "share" && words[3] != "whole") return std::nullopt;
  if (words[4] != "held" && words[4] != "tried") return std::nullopt;
  Claim claim{seam::to_string(*uuid), Bytes::from_bytes(*bytes),
              words[3] == "whole",    words[4] == "held",
              std::nullopt,           std::string(words[7])};
  if (runner->pid > 0) claim.runner = *runner;
  return claim;
}

// The last line: the checksum of a copy that is being written does not match.
std::string last_line(std::string_view before) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::uint64_t sum = abi::fnv1a(before.data(), before.size());
  std::string line(20, '\n');
  line.replace(0, 3, "end");
  for (std::size_t i = 18; i > 2; --i, sum >>= 4) line[i] = kDigits[sum & 15];
  return line;
}

}  // namespace

bool goes_first(const ClaimsOwner& a, const ClaimsOwner& b) {
  return std::tie(a.uid, a.daemon.pid, a.daemon.start_ticks) <
         std::tie(b.uid, b.daemon.pid, b.daemon.start_ticks);
}

std::string claims_name(const ClaimsOwner& owner) {
  return std::string(kPrefix) + std::to_string(owner.uid) + "." + std::to_string(owner.daemon.pid) +
         "." + std::to_string(owner.daemon.start_ticks);
}

std::optional<ClaimsOwner> parse_claims_name(std::string_view name) {
  if (!name.starts_with(kPrefix)) return std::nullopt;
  const std::vector<std::string_view> words = base::split(name.substr(kPrefix.size()), '.');
  if (words.size() != 3) return std::nullopt;
  const std::optional<std::uint64_t> uid = number(words[0], UINT32_MAX);
  const std::optional<core::ProcessRef> daemon = process(words[1], words[2]);
  if (!uid || !daemon || daemon->pid == 0) return std::nullopt;
  return ClaimsOwner{static_cast<std::uint32_t>(*uid), *daemon};
}

Result<std::string> format_claims(const ClaimsText& text) {
  if (text.claims.size() > kMaxClaims)
    return Error::exhausted("more than " + std::to_string(kMaxClaims) + " claims at once");
  const auto process_words = [](const core::ProcessRef& ref) {
    return std::to_string(ref.pid) + " " + std::to_string(ref.start_ticks);
  };
  std::string bytes(kFirstLine);
  bytes += std::to_string(text.sequence) + "\ndaemon " + std::to_string(text.owner.uid) + " " +
           process_words(text.owner.daemon) + " " + std::to_string(text.pid_namespace) + " " +
           (is_user(text.user) ? text.user : std::to_string(text.owner.uid)) + "\n";
  for (const Claim& claim : text.claims) {
    if (!seam::parse_uuid(claim.uuid) || !is_job(claim.job))
      return Error::invalid("cannot claim " + base::quote(claim.uuid) + " for job " +
                            base::quote(claim.job));
    bytes += "claim " + claim.uuid + " " + std::to_string(claim.bytes.count()) +
             (claim.whole ? " whole" : " share") + (claim.held ? " held " : " tried ") +
             process_words(claim.runner.value_or(core::ProcessRef{})) + " " + claim.job + "\n";
  }
  return bytes + last_line(bytes);
}

Result<ClaimsText> parse_claims(std::string_view bytes) {
  const Error bad = Error::corrupt("not a file of claims");
  if (!bytes.starts_with(kFirstLine))
    return bytes.starts_with("mete-claims ") ? Error::unsupported("claims of another version")
                                             : bad;
  const std::size_t end = bytes.substr(0, kMaxClaimsBytes).find("\nend");
  if (end == std::string_view::npos) return bad;
  const std::string_view sum = bytes.substr(end + 1, 20);
  bytes = bytes.substr(0, end + 1);
  if (sum != last_line(bytes)) return bad;
  bytes.remove_suffix(1);
  const std::vector<std::string_view> lines = base::split(bytes, '\n');
  const std::optional<std::uint64_t> sequence =
      number(lines[0].substr(kFirstLine.size()), UINT64_MAX);
  if (!sequence || lines.size() < 2 || lines.size() > kMaxClaims + 2) return bad;
  const std::vector<std::string_view> head = base::split(lines[1], ' ');
  if (head.size() != 6 || head[0] != "daemon" || !is_user(head[5])) return bad;
  const std::optional<std::uint64_t> uid = number(head[1], UINT32_MAX);
  const std::optional<core::ProcessRef> daemon = process(head[2], head[3]);
  const std::optional<std::uint64_t> name_space = number(head[4], UINT64_MAX);
  if (!uid || !daemon || !name_space) return bad;
  ClaimsText text{*sequence,
                  {static_cast<std::uint32_t>(*uid), *daemon},
                  *name_space,
                  std::string(head[5]),
                  {}};
  for (std::size_t i = 2; i < lines.size(); ++i) {
    std::optional<Claim> claim = parse_claim(base::split(lines[i], ' '));
    if (!claim) return bad;
    text.claims.push_back(*std::move(claim));
  }
  return text;
}

}  // namespace mete::node
