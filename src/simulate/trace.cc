// SPDX-License-Identifier: Apache-2.0
// See trace.h. Each list is a Csv whose columns are found by name; a row is read column by column,
// and the first wrong one is the error. Times are converted to milliseconds and checked against
// each other; types of jobs are checked against those of the nodes.
#include "simulate/trace.h"

#include <set>

#include "base/text.h"
#include "simulate/csv.h"

namespace mete::simulate {

using core::cluster::Ask;
using core::cluster::NodeSpec;

namespace {

// Several columns of one row at once: the first wrong one is the error.
struct Row {
  const Csv& csv;
  std::optional<Error> wrong;

  std::int64_t number(std::size_t column, std::int64_t most) {
    const Result<std::int64_t> value = csv.number(column, most);
    if (value) return *value;
    if (!wrong) wrong = value.error();
    return 0;
  }
};

// The first missing column is the error.
struct Columns {
  const Csv& csv;
  std::optional<Error> wrong;

  std::size_t operator()(std::string_view name) {
    const Result<std::size_t> at = csv.column(name);
    if (at) return *at;
    if (!wrong) wrong = at.error();
    return 0;
  }
};

// Numbers, one on each line, each below `limit`.
Result<std::vector<std::uint32_t>> parse_numbers(std::string_view text, const std::string& path,
                                                 std::size_t limit, const std::string& of_what) {
  std::vector<std::uint32_t> numbers;
  std::size_t line = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view word = base::trim(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    ++line;
    if (word.empty()) continue;
    const std::string where = path + ":" + std::to_string(line) + ": ";
    const Result<std::uint64_t> value = base::parse_uint(word);
    if (!value) return Error::invalid(where + "not a number: " + base::quote(word));
    if (*value >= limit)
      return Error::invalid(where + std::to_string(*value) + " is past the end: there are " +
                            std::to_string(limit) + " " + of_what + ", counted from 0");
    numbers.push_back(static_cast<std::uint32_t>(*value));
  }
  return numbers;
}

Result<std::vector<std::string>> parse_types(const Csv& csv, std::string_view text,
                                             const std::set<std::string, std::less<>>& known) {
  std::vector<std::string> types;
  bool some = false;
  for (const std::string_view part : base::split(text, '|')) {
    const std::string_view type = base::trim(part);
    if (type.empty()) continue;
    some = some || known.contains(type);
    types.emplace_back(type);
  }
  if (types.empty() || some) return types;
  const std::vector<std::string_view> names(known.begin(), known.end());
  const std::string_view near = base::nearest(types.front(), names);
  Error error = csv.error("no node has a card of type " + base::quote(text));
  if (near.empty()) return error;
  return std::move(error).with_hint("did you mean " + std::string(near) + "?");
}

// Keeps sums far from overflow. Ten years for a job: more is a mistake; times may be counted from
// 1970, in seconds.
constexpr std::uint64_t kMaxSeconds = 10ull * 366 * 86'400;
constexpr std::uint64_t kMaxMoment = 10'000'000'000;
constexpr std::int64_t kLeastPriority = -1000;
constexpr std::int64_t kMostPriority = 1000;

// The columns of a list of jobs with times and numbers of copies.
class TimeColumns {
 public:
  static constexpr const char* kCopies = "inst_num";

  static Result<TimeColumns> find(const Csv& csv) {
    TimeColumns columns;
    const Result<std::size_t> created = csv.column("creation_time");
    if (!created) return created.error();
    columns.created_ = *created;
    columns.duration_ = csv.optional_column("duration");
    if (!columns.duration_) {
      const Result<std::size_t> deleted = csv.column("deletion_time");
      if (!deleted) return deleted.error();
      columns.deleted_ = *deleted;
      columns.scheduled_ = csv.optional_column("scheduled_time");
    }
    columns.limit_ = csv.optional_column("time_limit");
    columns.priority_ = csv.optional_column("priority");
    columns.user_ = csv.optional_column("user");
    columns.copies_ = csv.optional_column(kCopies);
    return columns;
  }

  // How many start together; an empty field is one.
  static Result<std::uint32_t> copies_of(const Csv& csv, std::string_view text) {
    const std::string_view digits = base::trim(text);
    if (digits.empty()) return 1u;
    const Result<std::uint64_t> value = base::parse_uint(digits);
    if (!value || *value == 0 || *value > kMaxCopies)
      return csv.error(std::string(kCopies) + " must be from 1 to " + std::to_string(kMaxCopies) +
                       ", not " + base::quote(text));
    return static_cast<std::uint32_t>(*value);
  }

  Result<JobTimes> read(const Csv& csv) const {
    JobTimes times;
    const Result<std::int64_t> created = moment(csv, created_, "creation_time");
    if (!created) return created.error();
    times.submit_ms = *created;
    const Result<std::int64_t> run = run_of(csv, *created);
    if (!run) return run.error();
    times.run_ms = *run;
    if (limit_ && !base::trim(csv.field(*limit_)).empty()) {
      const Result<std::int64_t> limit = moment(csv, *limit_, "time_limit", kMaxSeconds);
      if (!limit) return limit.error();
      if (*limit < 1000) return csv.error("time_limit is less than a second");
      times.limit_s = static_cast<std::uint64_t>(*limit / 1000);
    }
    if (priority_) {
      const Result<std::int32_t> priority = priority_of(csv, csv.field(*priority_));
      if (!priority) return priority.error();
      times.priority = *priority;
    }
    if (user_ && !csv.field(*user_).empty()) times.user = csv.field(*user_);
    if (copies_) {
      const Result<std::uint32_t> copies = copies_of(csv, csv.field(*copies_));
      if (!copies) return copies.error();
      times.copies = *copies;
    }
    return times;
  }

 private:
  // In milliseconds.
  static Result<std::int64_t> moment(const Csv& csv, std::size_t column, const std::string& name,
                                     std::uint64_t most = kMaxMoment) {
    const Result<base::Milli> value = base::parse_milli(base::trim(csv.field(column)));
    if (!value || value->whole > most)
      return csv.error(name + " must be a number of seconds from 0 to " + std::to_string(most) +
                       ", not " + base::quote(csv.field(column)));
    return static_cast<std::int64_t>(value->whole * 1000 + value->thousandths);
  }

  Result<std::int64_t> run_of(const Csv& csv, std::int64_t created) const {
    if (duration_) return moment(csv, *duration_, "duration", kMaxSeconds);
    const Result<std::int64_t> deleted = moment(csv, deleted_, "deletion_time");
    if (!deleted) return deleted;
    std::int64_t began = created;
    if (scheduled_ && !base::trim(csv.field(*scheduled_)).empty()) {
      const Result<std::int64_t> scheduled = moment(csv, *scheduled_, "scheduled_time");
      if (!scheduled) return scheduled;
      began = *scheduled;
    }
    if (*deleted < began || began < created)
      return csv.error("a job cannot end before it begins, nor begin before it is created");
    if (*deleted - began > static_cast<std::int64_t>(kMaxSeconds) * 1000)
      return csv.error("a job cannot run for more than ten years");
    return *deleted - began;
  }

  static Result<std::int32_t> priority_of(const Csv& csv, std::string_view text) {
    std::string_view digits = base::trim(text);
    if (digits.empty()) return 0;
    const bool below = digits.front() == '-';
    if (below) digits.remove_prefix(1);
    const Result<std::uint64_t> value = base::parse_uint(digits);
    if (!value || *value > static_cast<std::uint64_t>(kMostPriority))
      return csv.error("priority must be from " + std::to_string(kLeastPriority) + " to " +
                       std::to_string(kMostPriority) + ", not " + base::quote(text));
    return static_cast<std::int32_t>(*value) * (below ? -1 : 1);
  }

  std::size_t created_ = 0;
  std::size_t deleted_ = 0;
  std::optional<std::size_t> scheduled_, duration_, limit_, priority_, user_, copies_;
};

}  // namespace

Result<std::vector<NodeSpec>> parse_nodes(std::string_view text, const std::string& path) {
  Result<Csv> csv = Csv::open(text, path);
  if (!csv) return csv.error();
  Columns columns{*csv, {}};
  const std::size_t name = columns("sn");
  const std::size_t cpu = columns("cpu_milli");
  const std::size_t ram = columns("memory_mib");
  const std::size_t cards = columns("gpu");
  const std::size_t model = columns("model");
  if (columns.wrong) return *columns.wrong;
  const std::optional<std::size_t> card_mib = csv->optional_column("gpu_memory_mib");
  std::vector<std::size_t> attributes;
  for (std::size_t i = 0; i < csv->names().size(); ++i)
    if (i != name && i != cpu && i != ram && i != cards && i != model && i != card_mib)
      attributes.push_back(i);
  std::vector<NodeSpec> nodes;
  std::set<std::string, std::less<>> names;
  while (true) {
    const Result<bool> more = csv->next();
    if (!more) return more.error();
    if (!*more) break;
    Row row{*csv, {}};
    NodeSpec node;
    node.name = csv->field(name);
    node.cpu_milli = static_cast<std::int32_t>(row.number(cpu, core::cluster::kMaxCpuMilli));
    node.ram_mib = static_cast<std::int32_t>(row.number(ram, core::cluster::kMaxRamMib));
    node.cards = static_cast<std::uint32_t>(row.number(cards, core::cluster::kMaxCards));
    node.card_type = std::string(base::trim(csv->field(model)));
    if (card_mib) node.card_mib = row.number(*card_mib, core::cluster::kMaxCardMib);
    if (row.wrong) return *row.wrong;
    if (node.name.empty()) return csv->error("a node has no name");
    if (!names.insert(node.name).second)
      return csv->error("there are two nodes " + base::quote(node.name));
    if (node.cards > 0 && node.card_type.empty())
      return csv->error("node " + base::quote(node.name) + " has cards of no model");
    for (const std::size_t column : attributes)
      if (!csv->field(column).empty()) node.attributes[csv->names()[column]] = csv->field(column);
    if (nodes.size() == kMaxNodes)
      return csv->error("more than " + std::to_string(kMaxNodes) + " nodes");
    nodes.push_back(std::move(node));
  }
  if (nodes.empty()) return csv->error("there are no nodes");
  return nodes;
}

Result<std::vector<TraceJob>> parse_jobs(std::string_view text, const std::string& path,
                                         const std::vector<NodeSpec>& nodes, Times times) {
  Result<Csv> csv = Csv::open(text, path);
  if (!csv) return csv.error();
  Columns columns{*csv, {}};
  const std::size_t name = columns("name");
  const std::size_t cpu = columns("cpu_milli");
  const std::size_t ram = columns("memory_mib");
  const std::size_t cards = columns("num_gpu");
  const std::size_t share = columns("gpu_milli");
  if (columns.wrong) return *columns.wrong;
  const std::optional<std::size_t> types = csv->optional_column("gpu_spec");
  std::set<std::string, std::less<>> known;
  for (const NodeSpec& node : nodes)
    if (node.cards > 0) known.insert(node.card_type);
  std::optional<TimeColumns> when;
  if (times == Times::kNeeded) {
    Result<TimeColumns> found = TimeColumns::find(*csv);
    if (!found) return found.error();
    when = *found;
  }
  const std::optional<std::size_t> copies =
      when ? std::nullopt : csv->optional_column(TimeColumns::kCopies);
  std::vector<TraceJob> jobs;
  while (true) {
    const Result<bool> more = csv->next();
    if (!more) return more.error();
    if (!*more) break;
    Row row{*csv, {}};
    TraceJob job;
    job.name = csv->field(name);
    Ask& ask = job.ask;
    ask.cpu_milli = static_cast<std::int32_t>(row.number(cpu, core::cluster::kMaxCpuMilli));
    ask.ram_mib = static_cast<std::int32_t>(row.number(ram, core::cluster::kMaxRamMib));
    ask.cards = static_cast<std::uint32_t>(row.number(cards, core::cluster::kMaxCards));
    const std::int64_t milli = row.number(share, core::cluster::kWholeCard);
    if (row.wrong) return *row.wrong;
    if (ask.cards > 0) {
      if (milli == 0) return csv->error("gpu_milli is 0, but num_gpu is not");
      ask.share = static_cast<std::int32_t>(milli);
      if (types) {
        Result<std::vector<std::string>> allowed = parse_types(*csv, csv->field(*types), known);
        if (!allowed) return allowed.error();
        ask.types = std::move(*allowed);
      }
    }
    if (copies) {
      const Result<std::uint32_t> many = TimeColumns::copies_of(*csv, csv->field(*copies));
      if (!many) return many.error();
      if (*many > 1)
        return csv
            ->error("job " + base::quote(job.name) + " is " + std::to_string(*many) +
                    " that start together")
            .with_hint("with --timed they do; arrivals without times are placed one by one");
    }
    if (when) {
      Result<JobTimes> known_times = when->read(*csv);
      if (!known_times) return known_times.error();
      job.times = std::move(*known_times);
    }
    jobs.push_back(std::move(job));
  }
  if (jobs.empty()) return csv->error("there are no jobs");
  return jobs;
}

Result<std::vector<std::uint32_t>> parse_arrivals(std::string_view text, const std::string& path,
                                                  std::size_t jobs) {
  return parse_numbers(text, path, jobs, "jobs");
}

Result<std::vector<std::uint32_t>> parse_ranks(std::string_view text, const std::string& path,
                                               std::size_t nodes) {
  Result<std::vector<std::uint32_t>> ranks = parse_numbers(text, path, nodes, "nodes");
  if (!ranks) return ranks;
  const std::set<std::uint32_t> once(ranks->begin(), ranks->end());
  if (once.size() != nodes || ranks->size() != nodes)
    return Error::invalid(path + ": there must be one rank for each of the " +
                          std::to_string(nodes) + " nodes, each number once");
  return ranks;
}

}  // namespace mete::simulate
