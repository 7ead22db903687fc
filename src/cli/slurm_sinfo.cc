// SPDX-License-Identifier: Apache-2.0
// sinfo: this machine as a partition with one node. See slurm.h.
#include <array>
#include <map>

#include "base/process.h"
#include "base/text.h"
#include "cli/slurm.h"
#include "cli/slurm_format.h"
#include "cli/slurm_jobs.h"
#include "cli/slurm_options.h"
#include "cli/slurm_words.h"
#include "wire/cards.h"

namespace mete::cli {

namespace {

constexpr std::array kSinfoOptions{
    SlurmOption{"noheader", 'h', SlurmOption::Takes::kNothing, SlurmOption::Here::kMeant},
    SlurmOption{"format", 'o', SlurmOption::Takes::kValue, SlurmOption::Here::kMeant},
    SlurmOption{"long", 'l', SlurmOption::Takes::kNothing, SlurmOption::Here::kMeant},
    SlurmOption{"Node", 'N', SlurmOption::Takes::kNothing, SlurmOption::Here::kMeant},
    SlurmOption{"Format", 'O', SlurmOption::Takes::kValue, SlurmOption::Here::kRefused,
                "say -o with letters"},
    SlurmOption{"iterate", 'i', SlurmOption::Takes::kValue, SlurmOption::Here::kRefused,
                "mete top"},
    SlurmOption{"all", 'a', SlurmOption::Takes::kNothing},
    SlurmOption{"summarize", 's', SlurmOption::Takes::kNothing},
    SlurmOption{"exact", 'e', SlurmOption::Takes::kNothing},
    SlurmOption{"partition", 'p', SlurmOption::Takes::kValue},
    SlurmOption{"nodes", 'n', SlurmOption::Takes::kValue},
    SlurmOption{"states", 't', SlurmOption::Takes::kValue},
    SlurmOption{"sort", 'S', SlurmOption::Takes::kValue},
};
const SlurmProgram kSinfo{"sinfo", kSinfoOptions};

struct NodeState {
  std::string shortly;
  std::string name;
};

NodeState node_state(const wire::CardsDocument& cards) {
  std::size_t usable = 0, full = 0, used = 0;
  for (const wire::CardView& card : cards.cards) {
    if (card.state != "ok" || !card.unusable.empty()) continue;
    ++usable;
    if (!card.granted.is_zero() || !card.jobs.empty()) ++used;
    if (card.grantable.is_zero() ||
        std::any_of(card.jobs.begin(), card.jobs.end(),
                    [](const wire::CardView::JobShare& job) { return job.whole; }))
      ++full;
  }
  if (usable == 0) {
    const bool drained =
        std::any_of(cards.cards.begin(), cards.cards.end(),
                    [](const wire::CardView& card) { return card.state == "drained"; });
    return drained ? NodeState{"drain", "drained"} : NodeState{"down", "down"};
  }
  if (used == 0) return {"idle", "idle"};
  return full == usable ? NodeState{"alloc", "allocated"} : NodeState{"mix", "mixed"};
}

// "gpu:h200:2".
std::string node_gres(const wire::CardsDocument& cards) {
  std::map<std::string, std::size_t> types;
  for (const wire::CardView& card : cards.cards) ++types[base::to_lower(card.type)];
  std::vector<std::string> all;
  for (const auto& [type, count] : types)
    all.push_back("gpu:" + (type.empty() ? "" : type + ":") + std::to_string(count));
  return all.empty() ? "(null)" : base::join(all, ",");
}

std::optional<std::string> sinfo_field(char letter, const wire::CardsDocument& cards) {
  const NodeState state = node_state(cards);
  switch (letter) {
    case 'P':
      return std::string(kSlurmPartition) + "*";
    case 'R':
      return std::string(kSlurmPartition);
    case 'a':
      return "up";
    case 'l':
      return "infinite";
    case 'D':
      return "1";
    case 't':
      return state.shortly;
    case 'T':
      return state.name;
    case 'N':
    case 'n':
      return base::short_host_name();
    case 'G':
      return node_gres(cards);
    case 'c':
      return std::to_string(sysconf(_SC_NPROCESSORS_ONLN));
    case 'm':
      return std::to_string((sysconf(_SC_PHYS_PAGES) >> 10) * (sysconf(_SC_PAGESIZE) >> 10));
    case 'E':
      return "none";
    case 'f':
      return "(null)";
    default:
      return std::nullopt;
  }
}

std::optional<std::string> sinfo_title(char letter) {
  static const std::map<char, std::string> kTitles{
      {'P', "PARTITION"}, {'R', "PARTITION"},     {'a', "AVAIL"}, {'l', "TIMELIMIT"},
      {'D', "NODES"},     {'t', "STATE"},         {'T', "STATE"}, {'N', "NODELIST"},
      {'n', "HOSTNAMES"}, {'G', "GRES"},          {'c', "CPUS"},  {'m', "MEMORY"},
      {'E', "REASON"},    {'f', "AVAIL_FEATURES"}};
  const auto found = kTitles.find(letter);
  return found == kTitles.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace

int run_sinfo(const SlurmWords& words, const Output& output) {
  SlurmOptions options;
  Result<SlurmWords> plain = slurm_plain_words(kSinfo, words, options);
  if (!plain) return output.fail(plain.error());
  if (!plain->empty())
    return output.fail(Error::invalid(base::quote(plain->front()) + " is not expected here")
                           .with_hint("sinfo -h -o '%N %T %G'"));
  Result<runner::DaemonClient> client =
      runner::DaemonClient::open(runner::DaemonClient::Start::kIfNeeded);
  if (!client) return output.fail(client.error());
  const Result<std::string> body = client->call("GET", "/v1/cards");
  const Result<wire::CardsDocument> cards = body ? wire::decode_cards(*body) : body.error();
  if (!cards) return output.fail(cards.error());
  const std::string format = options.has("format") ? options.value_of("format")
                             : options.has("Node") ? "%N %.6D %.9P %6t"
                             : options.has("long") ? "%9P %.5a %.10l %.6D %.11T %N %G"
                                                   : "%9P %.5a %.10l %.6D %.6t %N";
  const Result<std::string> titles = slurm_line(format, sinfo_title);
  if (!titles) return output.fail(titles.error());
  if (!options.has("noheader")) output.data(*titles);
  output.data(*slurm_line(format, [&](char letter) { return sinfo_field(letter, *cards); }));
  return kExitOk;
}

}  // namespace mete::cli
