// SPDX-License-Identifier: Apache-2.0
// Plays every story of tests/data/order/*.txt and compares the decisions with those in the file;
// METE_GOLDEN_UPDATE rewrites them. A story has cards, jobs and requests of users, and moves the
// clock. The grammar is in the README there.
#include "core/test/golden.h"

#include "core/test/state_world.h"

namespace mete::core {
namespace {

class Story : public World {
 public:
  Story() { machine_.cards.clear(); }
  int questions = 0;

  std::string read(const std::string& line) {
    if (line.empty() || line.front() == '#') return "";
    Words words(line);
    const std::string verb = words.next();
    if (verb == "card")
      machine_.cards.push_back(read_card(words));
    else if (verb == "rules")
      read_rules(words);
    else if (verb == "later")
      return pass_time(words);
    else
      return ask(verb, words);
    return "";
  }

 private:
  void read_rules(Words& words) {
    Rules rules;
    while (words.more()) {
      const std::string word = words.next();
      if (word == "cpus")
        rules.cpus = static_cast<std::uint32_t>(words.number());
      else if (word == "starve-after")
        rules.starve_after_s = words.number();
      else if (word == "grace")
        rules.grace_s = words.number();
      else
        ADD_FAILURE() << "no such rule: " << word;
    }
    state_ = State(rules);
  }

  std::string ask(const std::string& verb, Words& words) {
    ++questions;
    if (verb == "submit") return submit_job(words);
    if (verb == "walk") return walk();
    if (verb == "line") return line();
    if (verb == "why") return why_of(id(words));
    if (verb == "end" || verb == "fail" || verb == "oom" || verb == "lost")
      return end(verb, id(words));
    return done(verb, words);
  }

  std::string pass_time(Words& words) {
    const std::size_t before = events_.size();
    later(static_cast<std::int64_t>(words.number()));
    return happened_since(before);
  }
  // Events that followed without being asked for.
  std::string happened_since(std::size_t before) {
    std::string text;
    for (std::size_t i = before; i < events_.size(); ++i) {
      const Happened& what = events_[i].what;
      if (const auto* ended = std::get_if<JobEnded>(&what))
        text += answer(to_string(ended->id) + " ends: " + std::string(to_string(ended->outcome)));
      if (const auto* stopping = std::get_if<JobStopping>(&what))
        text += answer(to_string(stopping->id) +
                       " is being ended: " + std::string(to_string(stopping->why)));
      if (const auto* over = std::get_if<Unreserved>(&what))
        text += answer("reservation " + std::to_string(over->id) + " is over");
    }
    return text;
  }

  static JobId id(Words& words) { return parse_job_id(words.next()).value(); }
  // "+600": seconds after the story began.
  WallTime moment_of(const std::string& text) const {
    EXPECT_TRUE(text.starts_with('+')) << text;
    const std::uint64_t seconds = base::parse_uint(std::string_view(text).substr(1)).value();
    return {begin_.ms + static_cast<std::int64_t>(seconds) * 1000};
  }
  std::string in_words(WallTime time) const {
    return "+" + std::to_string((time.ms - begin_.ms) / 1000);
  }

  void read_job(JobSpec& spec, Words& words) {
    while (words.more()) {
      const std::string option = words.next();
      if (read_option(option, words, spec.request)) continue;
      const auto number = [&] { return static_cast<std::uint32_t>(words.number()); };
      if (option == "--time")
        spec.time_s = words.number();
      else if (option == "--name")
        spec.name = words.next();
      else if (option == "--cpus")
        spec.request.cpus = number();
      else if (option == "--array")
        spec.array = parse_array(words.next()).value();
      else if (option == "--retries")
        spec.retries = number();
      else if (option == "--retry-gpu")
        spec.retry_gpu_pct = number();
      else if (option == "--requeue")
        spec.requeue = true;
      else if (option == "--hold")
        spec.held = true;
      else if (option == "--begin")
        spec.begin = moment_of(words.next());
      else if (option == "--deadline")
        spec.deadline = moment_of(words.next());
      else if (option == "--after")
        spec.after.push_back(read_after(words.next()));
      else
        ADD_FAILURE() << "no such option: " << option;
    }
  }
  static After read_after(const std::string& text) {
    const std::vector<std::string_view> parts = base::split(text, ':');
    After after{parse_job_id(parts[0]).value(), When::kOk};
    if (parts.size() == 2) after.when = parse_when(parts[1]).value();
    return after;
  }

  std::string submit_job(Words& words) {
    JobSpec spec = spec_of("0", words.next());
    read_job(spec, words);
    const Result<JobId> id = try_submit(spec);
    return id ? answer("job " + to_string(*id)) : error_answer(id.error());
  }

  std::string walk() {
    const std::size_t before = events_.size();
    settle();
    std::string text = happened_since(before);
    const PassResult result = state_.look(moment()).result;
    for (const JobId id : grant()) {
      text += answer(to_string(id) + " starts" + cards_of(job(id)));
      started(id);
    }
    if (result.held_for)
      text += answer("room is held for " + to_string(*result.held_for) +
                     (result.held_until ? ", until " + in_words(*result.held_until) : ""));
    return text.empty() ? answer("nobody starts") : text;
  }
  static std::string cards_of(const Job& job) {
    std::string text;
    for (const GrantedCard& card : job.grant)
      text += (text.empty() ? " on card " : ", on card ") + std::to_string(card.index) + ": " +
              to_exact_string(card.bytes) + (card.whole ? " whole" : "");
    return text;
  }

  std::string line() {
    std::string text;
    for (const JobId id : in_order(state_.pass_input(moment())))
      text += (text.empty() ? "" : " ") + to_string(id);
    return answer(text.empty() ? "nobody" : text);
  }

  std::string why_of(JobId id) {
    const Job& asked = job(id);
    if (asked.state != JobState::kPending)
      return answer(std::string(to_string(asked.state)) +
                    (asked.outcome ? ", " + std::string(to_string(*asked.outcome)) : ""));
    const Wait wait = wait_of(id);
    return answer(std::string(to_string(wait.reason)) + ": " + wire::wait_text(wait));
  }

  std::string end(const std::string& verb, JobId id) {
    if (verb == "lost") {
      EXPECT_TRUE(take(RunnerGone{id}).ok());
      EXPECT_TRUE(take(JobGone{id}).ok());
    } else if (verb == "oom") {
      runs_out_of_gpu(id);
    } else {
      ended(id, exit_with(verb == "end" ? 0 : 1));
    }
    const Job& after = job(id);
    if (after.state == JobState::kEnded) return answer(std::string(to_string(*after.outcome)));
    return answer(std::string(to_string(after.state)) + ", attempt " +
                  std::to_string(after.attempt) + ", asks for " +
                  to_string(*request_of(after).gpu));
  }

  std::string done(const std::string& verb, Words& words) {
    const Result<void> result = take(input(verb, words));
    if (!result) return error_answer(result.error());
    if (verb == "reserve") {
      const Reservation& made = state_.reservations().back();
      Job like;
      like.grant = made.cards;
      return answer("reservation " + std::to_string(made.id) + cards_of(like));
    }
    return answer("done");
  }
  Input input(const std::string& verb, Words& words) {
    const Caller root = caller("root");
    if (verb == "cancel") return Cancel{id(words), root};
    if (verb == "hold") return Hold{id(words), root};
    if (verb == "release") return Release{id(words), root};
    if (verb == "requeue") return Requeue{id(words), root};
    if (verb == "priority") {
      const JobId of = id(words);
      return SetPriority{of, root, std::stoi(words.next())};
    }
    if (verb == "drain" || verb == "undrain") return Drain{words.next(), root, verb == "drain"};
    if (verb == "unreserve") return Unreserve{words.number(), root};
    if (verb == "reserve") return read_reservation(words);
    EXPECT_EQ(verb, "quota") << "no such verb";
    return read_quota(words);
  }
  Reserve read_reservation(Words& words) {
    Reserve reserve;
    reserve.by = caller("root");
    reserve.user = words.next();
    reserve.from = moment_of(words.next());
    reserve.until = moment_of(words.next());
    reserve.request = read_request(words);
    return reserve;
  }
  static SetQuota read_quota(Words& words) {
    SetQuota set{words.next(), {}, caller("root")};
    if (set.user == "everybody") set.user.clear();
    while (words.more()) {
      const std::string what = words.next();
      if (what == "bytes")
        set.quota.bytes = words.bytes();
      else if (what == "cards")
        set.quota.cards = static_cast<std::uint32_t>(words.number());
      else if (what == "running")
        set.quota.running = static_cast<std::uint32_t>(words.number());
      else if (what == "jobs")
        set.quota.jobs = static_cast<std::uint32_t>(words.number());
      else
        ADD_FAILURE() << "no such limit: " << what;
    }
    return set;
  }

  const WallTime begin_ = now_;
};

TEST(Golden, EveryStoryEndsAsItSays) { compare_files<Story>("tests/data/order"); }

}  // namespace
}  // namespace mete::core
