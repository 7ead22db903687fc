// SPDX-License-Identifier: Apache-2.0
// `meted --restore`, see backup.h. The copy is checked and brought up to date in a folder of its
// own inside the state folder; then two renames put it in place. What ran when the copy was made
// does not run any more: these jobs end, or wait again, as after a reboot. Job numbers that were
// given out since the copy was made are not given out again.
#include <dirent.h>
#include <fcntl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <utility>
#include <vector>

#include "base/exit_code.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/text.h"
#include "daemon/backup.h"
#include "daemon/repair.h"
#include "engine/engine.h"
#include "launch/grant_file.h"
#include "launch/job_scan.h"
#include "launch/keeper_record.h"
#include "seam/clock.h"
#include "seam/launcher.h"
#include "store/files.h"
#include "store/mark.h"
#include "store/repair.h"
#include "wire/event.h"
#include "wire/job.h"
#include "wire/json_text.h"

namespace mete::daemon {

namespace {

constexpr std::size_t kMostNamed = 20;  // of jobs, in lines
// Without the state that followed the copy it is not known which numbers were given out since.
constexpr std::uint64_t kGap = 10'000;

// The engine only loads: it starts and ends nothing.
struct NoLauncher final : seam::Launcher {
  bool reserve(core::JobId, const std::vector<core::GrantedCard>&) override { return true; }
  void start(const core::Job&) override {}
  void watch(core::JobId, core::ProcessRef) override {}
  void stop(core::JobId) override {}
  void forget(core::JobId) override {}
};

Result<core::State> load(store::SqliteStore& store) {
  NoLauncher launcher;
  engine::Engine engine(seam::system_clock(), store, launcher, {});
  if (Result<void> r = engine.load(); !r) return std::move(r).error();
  return engine.state();
}

// The state that is there now.
struct Present {
  bool exists = false;
  bool empty = true;    // it has no jobs and no settings
  std::string trouble;  // it cannot be read
  std::string identity;
  std::uint64_t last_seq = 0;
  std::uint64_t last_job = 0;
  std::vector<std::string> running;  // jobs with a living runner
};

void add_living_keepers(const std::string& folder, Present& present) {
  const std::unique_ptr<DIR, int (*)(DIR*)> keep(opendir(base::join_path(folder, "keep").c_str()),
                                                 closedir);
  if (!keep) return;
  while (const dirent* entry = readdir(keep.get())) {
    const std::optional<launch::RecordName> name = launch::parse_record_name(entry->d_name);
    if (!name) continue;
    const Result<launch::Record> record =
        launch::read_record(base::join_path(folder, "keep/" + std::string(entry->d_name)));
    if (record && record->claim.boot == launch::boot_id() &&
        launch::is_living(record->claim.keeper))
      present.running.push_back(to_string(name->job));
  }
}

Result<Present> look_at_present(const std::string& folder) {
  Present present;
  struct stat info {};
  for (const char* name : {"meted.db", "meted.db-wal", "meted.mark"})
    present.exists = present.exists || lstat(base::join_path(folder, name).c_str(), &info) == 0;
  add_living_keepers(folder, present);
  if (!present.exists) return present;
  Result<std::unique_ptr<store::SqliteStore>> store = store::SqliteStore::open(folder);
  Result<core::State> state = store ? load(**store) : Result<core::State>(store.error());
  if (!state) {
    const Error& error = state.error();
    if (error.code == ErrorCode::kBusy)
      return Error(error).with_hint("mete daemon stop; running jobs continue");
    if (error.code == ErrorCode::kDenied) return error;
    present.empty = false;
    present.trouble = error.message;
    if (const Result<std::optional<store::MarkContent>> mark = store::read_mark(folder);
        mark && *mark) {
      present.identity = (*mark)->database;
      present.last_seq = (*mark)->seq;
    }
    return present;
  }
  present.identity = (*store)->identity();
  present.last_seq = state->last_seq();
  present.last_job = state->last_job();
  present.empty = state->last_job() == 0 && state->quotas().empty() &&
                  state->reservations().empty() && state->drained().empty();
  for (const core::JobId id : state->active())
    if (const core::Job& job = *state->find(id);
        !job.spec->detached && job.runner && launch::is_living(*job.runner))
      present.running.push_back(to_string(id));
  return present;
}

Result<void> check_present(const Present& present, const RestoreOptions& options) {
  if (!present.running.empty())
    return Error::busy("jobs of the present state still run")
        .with_evidence("job " + base::join(present.running, ", "))
        .with_hint("wait for them, or: mete cancel " + base::join(present.running, " "));
  if (present.empty || options.force || options.dry_run) return {};
  return Error::busy("there is a state already")
      .with_evidence(options.state_dir +
                     (present.trouble.empty()
                          ? ", with jobs up to " + std::to_string(present.last_job)
                          : ": " + present.trouble))
      .with_hint("--force replaces it, and keeps it under another name");
}

Result<void> copy_file(const std::string& from, const std::string& to) {
  Result<Fd> source = base::open_fd(from, O_RDONLY | O_NONBLOCK);
  if (!source) return std::move(source).error();
  struct stat info {};
  if (fstat(source->get(), &info) != 0) return Error::from_errno("read " + from, errno);
  if (!S_ISREG(info.st_mode)) return Error::invalid(from + " is not a plain file");
  Result<Fd> target = base::open_fd(to, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!target) return std::move(target).error();
  for (off_t left = info.st_size; left > 0;) {
    const ssize_t sent =
        sendfile(target->get(), source->get(), nullptr, static_cast<std::size_t>(left));
    if (sent < 0) return Error::from_errno("copy " + from, errno);
    if (sent == 0) return Error::io(from + " became shorter");
    left -= sent;
  }
  return {};
}

// A folder that goes with us.
class Scratch {
 public:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  ~Scratch() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

struct Restored {
  std::uint64_t last_seq = 0;  // of the copy
  WallTime as_of;              // its last event; 0: it has none
  std::size_t jobs = 0;        // known ones, ended ones among them
  std::size_t waiting = 0;
  std::vector<std::string> ended;  // they ran, and are lost
  std::vector<std::string> again;  // they ran, and wait again
  std::uint64_t next_job = 0;
  std::string kept;  // where the state before is now; "": there was none
};

// Adds what has changed to the log of the copy.
class Aftermath {
 public:
  Aftermath(core::State state, store::SqliteStore& store, WallTime now)
      : state_(std::move(state)), store_(store), now_(now) {}

  // As after a reboot: no process of the jobs lives.
  void end_all(Restored& done) {
    std::vector<core::JobId> open;
    for (const auto& [id, job] : state_.jobs())
      if (job.state != core::JobState::kEnded) open.push_back(id);
    for (const core::JobId id : open) {
      const core::Job& job = *state_.find(id);
      const bool waits = job.state == core::JobState::kPending;
      if (waits && job.spec->detached) continue;
      if (job.spec->detached) {
        decide(core::RunnerGone{id});
        decide(core::JobGone{id});
      } else {
        record(core::JobEnded{id, job.outcome.value_or(core::Outcome::kLost), {}});
      }
      const core::Job* after = state_.find(id);
      const bool again = after != nullptr && after->state == core::JobState::kPending;
      (again ? done.again : done.ended).push_back(to_string(id));
    }
  }

  void raise_last_job(std::uint64_t number) {
    if (number > state_.last_job()) record(core::Repaired{0, number});
  }

  const core::State& state() const { return state_; }

 private:
  void decide(const core::Input& input) {
    const core::Pool none;
    if (core::Decided events = state_.decide(input, {none, core::Policy::kBestFit, now_}))
      for (core::Happened& what : *events) record(std::move(what));
  }

  void record(core::Happened what) {
    const std::string job = wire::job_of(what);
    std::uint32_t attempt = 0;
    if (!job.empty())
      if (const core::Job* before = state_.find(*core::parse_job_id(job)))
        attempt = before->attempt;
    const core::Event event{state_.last_seq() + 1, now_, std::move(what)};
    state_.apply(event);
    store_.append({event.seq, now_.ms, std::string(core::type_of(event.what)), job,
                   wire::encode(event.what, attempt)});
  }

  core::State state_;
  store::SqliteStore& store_;
  WallTime now_;
};

std::uint64_t last_number(const core::State& copy, std::uint64_t copied_seq,
                          const std::string& identity, const Present& present,
                          const std::string& folder) {
  const std::uint64_t known = std::max({copy.last_job(), present.last_job, highest_job_in(folder)});
  if (identity != present.identity) return (known / kGap + 1) * kGap - 1;
  if (present.trouble.empty()) return known;
  // Each event after the copy may have been a job.
  const std::uint64_t more = present.last_seq > copied_seq ? present.last_seq - copied_seq : 0;
  return std::max(known, copy.last_job() + more);
}

// Opens the copy in the scratch folder, checks all of it, and adds what a restore changes.
Result<Restored> prepare(const RestoreOptions& options, const std::string& folder,
                         const Present& present, const Scratch& scratch, WallTime now) {
  if (Result<void> r = base::make_directories(scratch.path()); !r) return std::move(r).error();
  const std::string database = base::join_path(scratch.path(), "meted.db");
  if (Result<void> r = copy_file(options.file, database); !r) return std::move(r).error();
  // A copy that was made by hand may have its log beside it.
  struct stat info {};
  if (stat((options.file + "-wal").c_str(), &info) == 0)
    if (Result<void> r = copy_file(options.file + "-wal", database + "-wal"); !r)
      return std::move(r).error();
  if (stat(database.c_str(), &info) == 0 && info.st_size == 0)
    return Error::corrupt("the file is empty");
  Restored done;
  {
    Result<std::unique_ptr<store::SqliteStore>> store = store::SqliteStore::open(scratch.path());
    if (!store) return std::move(store).error();
    Result<core::State> state = load(**store);
    if (!state) return std::move(state).error();
    done.last_seq = state->last_seq();
    if (const auto events =
            (*store)->load_events(done.last_seq - std::min<std::uint64_t>(done.last_seq, 1), 1);
        events && !events->empty())
      done.as_of = WallTime{events->front().at_ms};
    const std::uint64_t last =
        last_number(*state, done.last_seq, (*store)->identity(), present, folder);
    Aftermath after(*std::move(state), **store, now);
    after.end_all(done);
    after.raise_last_job(last);
    if (Result<void> r = (*store)->commit(); !r) return std::move(r).error();
    done.jobs = after.state().jobs().size();
    done.waiting = after.state().unfinished();
    done.next_job = after.state().last_job() + 1;
  }
  if (const std::string damage = store::damage_in_contents(database); !damage.empty())
    return Error::corrupt(damage);
  return done;
}

// A kill in between leaves the old state under its other name, and the next start begins an empty
// one or says what is missing.
Result<void> put_in_place(const std::string& folder, const Scratch& scratch, const Present& present,
                          const std::string& time, Restored& done) {
  const std::string database = base::join_path(folder, "meted.db");
  const std::string aside = ".before-restore-" + time;
  if (present.exists) {
    done.kept = database + aside;
    for (const std::string& path : {database, database + "-wal", store::mark_path(folder)})
      if (rename(path.c_str(), (path + aside).c_str()) != 0 && errno != ENOENT)
        return Error::from_errno("keep " + path + aside, errno);
  }
  const std::string fresh = base::join_path(scratch.path(), "meted.db");
  if (rename(fresh.c_str(), database.c_str()) != 0)
    return Error::from_errno("rename " + fresh, errno);
  return base::sync_folder(folder);
}

std::string some(std::vector<std::string> names) {
  const std::size_t more = names.size() - std::min(names.size(), kMostNamed);
  names.resize(names.size() - more);
  return base::join(names, ", ") + (more == 0 ? "" : ", and " + std::to_string(more) + " more");
}

std::string lines(const Restored& done, const RestoreOptions& options) {
  std::string text = options.dry_run ? "would restore " : "restored ";
  text += options.file;
  if (done.as_of.ms != 0) text += ", last change " + to_string(done.as_of);
  text += "\n  jobs    " + std::to_string(done.jobs) + ", of which " +
          std::to_string(done.waiting) + " wait\n";
  if (!done.ended.empty())
    text += "  lost    " + some(done.ended) + ": they ran when the copy was made\n";
  if (!done.again.empty()) text += "  again   " + some(done.again) + ": they wait again\n";
  text += "  next    the next job is " + std::to_string(done.next_job) + "\n";
  if (!done.kept.empty()) text += "  before  the state before is " + done.kept + "\n";
  return text;
}

std::string document(const Restored& done, const RestoreOptions& options, WallTime at) {
  wire::JsonText out;
  out.open();
  out.put("schema", "mete.restore/1");
  out.put("at", at);
  out.put("from", options.file);
  out.put("dry_run", options.dry_run);
  out.put("last_seq", done.last_seq);
  if (done.as_of.ms != 0) out.put("as_of", done.as_of);
  out.put("jobs", done.jobs);
  out.put("waiting", done.waiting);
  out.put("lost_jobs", done.ended);
  out.put("requeued_jobs", done.again);
  out.put("next_job", done.next_job);
  out.put_if("kept", std::string_view(done.kept));
  out.close();
  return out.take() + "\n";
}

Result<Restored> restore(const RestoreOptions& options, WallTime now) {
  Result<std::string> folder = store::trusted_folder(options.state_dir);
  if (!folder) return std::move(folder).error();
  const Result<Present> present = look_at_present(*folder);
  if (!present) return present.error();
  if (Result<void> r = check_present(*present, options); !r) return std::move(r).error();
  const Scratch scratch(base::join_path(*folder, ".restore-" + stamp(now)));
  Result<Restored> done = prepare(options, *folder, *present, scratch, now);
  if (!done) {
    Error error = std::move(done).error();
    // Its errors name the scratch folder.
    if (error.code == ErrorCode::kCorrupt || error.code == ErrorCode::kUnsupported)
      return Error{error.code, options.file + " cannot be restored",
                   error.message + (error.evidence.empty() ? "" : ": " + error.evidence),
                   error.code == ErrorCode::kCorrupt ? "use another backup" : error.hint};
    return error;
  }
  if (!options.dry_run)
    if (Result<void> r = put_in_place(*folder, scratch, *present, stamp(now), *done); !r)
      return std::move(r).error();
  return done;
}

}  // namespace

int run_restore(const RestoreOptions& options) {
  const WallTime now = seam::system_clock().wall();
  const Result<Restored> done = restore(options, now);
  if (!done) {
    const bool bad_file = done.error().code == ErrorCode::kCorrupt ||
                          done.error().code == ErrorCode::kUnsupported ||
                          done.error().code == ErrorCode::kInvalid;
    return tell_failure(
        done.error(), options.json,
        bad_file ? base::kExitBadFile : base::exit_code_of_failure(done.error().code));
  }
  (void)std::fputs((options.json ? document(*done, options, now) : lines(*done, options)).c_str(),
                   stdout);
  return 0;
}

}  // namespace mete::daemon
