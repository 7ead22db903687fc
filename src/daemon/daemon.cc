// SPDX-License-Identifier: Apache-2.0
// See daemon.h. One thread and one loop. Daemon owns the parts, in the order in which they need
// each other, and connects them: requests and what the eyes see go to the service, which takes
// turns of the engine; the engine uses the hands, and what they report comes back as inputs. Once a
// second tick() checks that the store and the socket are still in place, and whether there is
// anything left to do. run_daemon() claims the socket and the store before anything slow.
#include "daemon/daemon.h"

#include <grp.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "abi/grant.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "daemon/backup.h"
#include "daemon/claims_keeper.h"
#include "daemon/courier.h"
#include "daemon/eyes.h"
#include "daemon/front_door.h"
#include "daemon/hands.h"
#include "daemon/log.h"
#include "daemon/program_watch.h"
#include "daemon/seam_loop.h"
#include "daemon/sweep_files.h"
#include "engine/engine.h"
#include "engine/notifier.h"
#include "launch/parts.h"
#include "launch/state_dir.h"
#include "net/http_server.h"
#include "net/listen.h"
#include "net/loop.h"
#include "net/tcp_listen.h"
#include "node/card_helper.h"
#include "node/proc.h"
#include "serve/service.h"
#include "store/schema.h"
#include "store/sqlite_store.h"

namespace mete::daemon {

namespace {

constexpr seam::Milliseconds kLookPeriod{1'000};
constexpr seam::Milliseconds kMetricsRetry{10'000};

void log_line(const std::string& text) {
  const std::string line = to_string(seam::system_clock().wall()) + " " + text + "\n";
  (void)!write(STDERR_FILENO, line.data(), line.size());
}

std::optional<node::ClaimBook> open_claims(const std::string& simulation) {
  const std::string user = base::variable("USER");
  Result<node::ClaimBook> book =
      node::ClaimBook::open(node::claims_folders(base::variable("METE_CLAIMS_DIR"), simulation),
                            user.empty() ? std::to_string(getuid()) : user);
  if (book) return *std::move(book);
  log_line("other users' daemons cannot be heard: " + in_one_line(book.error()));
  return std::nullopt;
}

class Daemon {
 public:
  Daemon(DaemonOptions options, std::unique_ptr<store::SqliteStore> store, launch::Parts parts,
         FrontDoor& door)
      : options_(std::move(options)),
        door_(door),
        store_(std::move(store)),
        parts_(std::move(parts)),
        simulated_(base::variable("METE_SIM")),
        seam_(seam_loop(loop_, log_line)),
        claims_(open_claims(simulated_.empty() ? "" : simulation_folder()), seam_,
                [this] { service_.tell(core::Look{}); }),
        hands_(
            hands_settings(), seam_, clock_, claims_, *store_,
            [this](core::Input input) { service_.tell(std::move(input)); }, log_line),
        engine_(clock_, *store_, hands_, engine_options()),
        service_(loop_, clock_, engine_, identity()),
        backup_(*store_, seam_),
        courier_(parts_.notify, options_.config.sendmail.value, seam_),
        sweep_files_([this](std::uint32_t uid) { return hands_.folder_of(uid); }, options_.system,
                     clock_.wall(), log_line),
        notifier_(notifier_hooks(), seam_, clock_, base::host_name()),
        eyes_(eyes_settings(), seam_, clock_, engine_.state(), claims_, hands_.movers(),
              {[this](core::Input input) { service_.tell(std::move(input)); },
               [this](serve::MachineReading machine) {
                 service_.see(std::move(machine));
                 claims_.see(engine_.machine());
               }}) {
    hands_.meet(engine_.state(), service_.machine());
    service_.on_fatal = [this](const Error& error) { fail(error); };
    service_.on_stop = [this] { stop(); };
    service_.on_reload = [this] { return reload(); };
    service_.on_backup = [this](const std::string& path, BackupJob::Done done) {
      backup_.start(path, std::move(done));
    };
    service_.on_turn = [this](bool busy) {
      eyes_.set_busy(busy);
      notifier_.pump();
      sweep_files_.write_ended(engine_.state().sweeps());
    };
  }

  Result<void> recover() {
    if (Result<void> r = engine_.load(); !r) return r;
    if (Result<void> r = hands_.begin(); !r) return r;
    if (Result<void> r = engine_.recover(); !r) return r;
    claims_.begin();
    notifier_.begin(told_up_to());
    return {};
  }

  Result<void> serve() {
    net::HttpServer::Limits limits;
    limits.descriptors = options_.descriptors.shares.connections;
    // No user can shut out the others. A thousand waiting runs of one user must fit.
    if (options_.system) {
      limits.connections_per_user = 1280;
      limits.body_bytes_per_user = 16 << 20;
      limits.waiting_bytes_per_user = 64 << 20;
    }
    Result<net::HttpServer> server = net::HttpServer::start(
        loop_, door_.take_socket(),
        [this](net::Request request, net::Responder responder) {
          service_.handle(std::move(request), std::move(responder));
        },
        limits);
    if (!server) return std::move(server).error();
    server_.emplace(*std::move(server));
    serve_metrics();
    return {};
  }

  // The successor: see DaemonEnd.
  const std::string& successor() const { return successor_; }

  int run() {
    hear_signals();
    (void)store_is_in_place();  // remembers the file
    ticker_ = loop_.every(kLookPeriod, [this] { tick(); });
    loop_.run();
    if (exit_code_ == 0) sweep_files_.write(engine_.state().sweeps());
    if (exit_code_ == 0)
      if (const Result<void> saved = engine_.save(); !saved)
        log_line("the state was not saved in short form: " + in_one_line(saved.error()));
    return exit_code_;
  }

 private:
  serve::Identity identity() const {
    serve::Identity identity;
    identity.version = options_.version;
    identity.grant_abi = std::to_string(abi::kGrantMajor) + "." + std::to_string(abi::kGrantMinor);
    identity.store = store::kSchemaVersion;
    identity.mode = options_.system ? "system" : "user";
    identity.state_dir = options_.state_dir;
    identity.uid = geteuid();
    identity.admin_gid = admin_gid();
    identity.logs_of = [this](const core::Job& job) { return hands_.logs_of(job); };
    identity.folder_of = [this](std::uint32_t uid) { return hands_.folder_of(uid); };
    identity.preemptible = options_.config.preemptible.value;
    identity.escape_stop = options_.config.escape_stop.value;
    identity.notify = notify_defaults();
    identity.notify_counts = [this] {
      const engine::Notifier::Counts counts = notifier_.counts();
      return wire::DaemonView::Notify{counts.waiting, counts.sent, counts.failed, counts.dropped};
    };
    identity.park_door = [this](const core::Job& job) { return hands_.movers().door(job); };
    if (!parts_.mover.empty()) identity.park_room = [this] { return park_room(); };
    identity.idle_end_s = idle_end_s();
    identity.readings = readings_path();
    identity.simulated = simulated_;
    // A private daemon has the jobs of its user only.
    if (options_.system) identity.others = options_.config.others.value;
    identity.metric_jobs = options_.config.metrics_jobs.value;
    identity.around = [this] { return around(); };
    return identity;
  }

  serve::ParkRoom park_room() const {
    const std::vector<std::string> files =
        config::ConfigPlaces::from_environment(!options_.system).files();
    return {hands_.movers().arena() + options_.config.spill_max.value,
            engine_options().rules.machine_ram.value_or(Bytes()),
            files.empty() ? "the configuration" : files.back()};
  }

  serve::Around around() const {
    return {door_.path(),     server_ ? server_->connections() : 0,
            eyes_.restarts(), metrics_ ? options_.config.metrics_listen.value : "",
            metrics_trouble_, config_trouble_,
            needs_restart_};
  }

  // Open to every client that can reach the address; serves nothing else.
  Result<net::HttpServer> open_metrics() {
    const std::size_t clients = std::min<std::size_t>(64, options_.descriptors.shares.handles);
    const Result<base::HostPort> address =
        base::parse_host_port(options_.config.metrics_listen.value);
    if (!address) return address.error();
    Result<Fd> socket = net::listen_tcp(*address);
    if (!socket) return std::move(socket).error();
    net::HttpServer::Limits limits;
    limits.connections = limits.connections_per_user = clients;
    limits.body_bytes = limits.header_bytes = 16 << 10;
    return net::HttpServer::start(
        loop_, *std::move(socket),
        [this](const net::Request& request, net::Responder responder) {
          service_.handle_metrics(request, std::move(responder));
        },
        limits);
  }

  // A port that is taken stops no job: it is logged, and retried.
  void serve_metrics() {
    const std::string& where = options_.config.metrics_listen.value;
    if (where.empty() || stopping_) return;
    Result<net::HttpServer> server = open_metrics();
    if (server) {
      metrics_.emplace(*std::move(server));
      metrics_trouble_.clear();
      log_line("metrics are served at " + where);
      return;
    }
    const std::string trouble = in_one_line(server.error());
    if (std::exchange(metrics_trouble_, trouble) != trouble)
      log_line("metrics are not served: " + trouble);
    metrics_timer_ = loop_.after(kMetricsRetry, [this] { serve_metrics(); });
  }

  // ---- the configuration, again ----

  // On SIGHUP and on request: reads the files again. A mistake in them changes nothing.
  Result<wire::ReloadView> reload() {
    const auto places = config::ConfigPlaces::from_environment(!options_.system);
    const Result<config::Config> read = config::load_config(places);
    if (!read) {
      config_trouble_ = in_one_line(read.error());
      log_line("the configuration was not reloaded, nothing changed: " + config_trouble_);
      return read.error();
    }
    config_trouble_.clear();
    needs_restart_.clear();
    wire::ReloadView view;
    for (const std::string& path : places.files())
      if (access(path.c_str(), F_OK) == 0) view.files.push_back(path);
    for (const config::Change& change : config::changes(options_.config, *read)) {
      (change.live ? view.applied : view.restart)
          .push_back({change.key, change.old_value, change.new_value, to_string(change.origin)});
      const std::string old_value = change.old_value.empty() ? "not set" : change.old_value;
      const std::string new_value = change.new_value.empty() ? "not set" : change.new_value;
      if (!change.live) needs_restart_.push_back(change.key);
      log_line("configuration: " + change.key +
               (change.live ? " is now " + new_value + ", was " + old_value
                            : " stays " + old_value + ": " + new_value + " needs a restart") +
               " (" + to_string(change.origin) + ")");
    }
    if (view.applied.empty() && view.restart.empty())
      log_line("configuration: reloaded, nothing has changed");
    take_config(config::without_fixed(options_.config, *read));
    return view;
  }

  void take_config(config::Config config) {
    const std::string listened = options_.config.metrics_listen.value;
    options_.config = std::move(config);
    const engine::Options engine = engine_options();
    engine_.set_rules(engine.policy, engine.rules);
    hands_.set_config(options_.config);
    courier_.set_sendmail(options_.config.sendmail.value);
    service_.set_identity(identity());
    eyes_.set_config(options_.config);
    if (listened != options_.config.metrics_listen.value) {
      metrics_.reset();
      metrics_timer_ = {};
      metrics_trouble_.clear();
      serve_metrics();
    }
    service_.tell(core::Look{});
  }

  // ---- notifications ----

  core::NotifySpec notify_defaults() const {
    core::NotifySpec spec;
    for (const std::string& text : options_.config.notify_to.value)
      if (Result<core::NotifyTarget> target = core::parse_notify(text))
        spec.to.push_back(*std::move(target));
    for (const std::string& text : options_.config.notify_on.value)
      if (const std::optional<core::NotifyOn> on = core::parse_notify_on(text))
        spec.on.push_back(*on);
    return spec;
  }

  std::string told_path() const { return base::join_path(options_.state_dir, "notified"); }

  // Without a record (the first daemon here) earlier events are not notified.
  std::uint64_t told_up_to() const {
    const std::uint64_t last = engine_.state().last_seq();
    const Result<std::string> text = base::read_all(told_path(), 64);
    const Result<std::uint64_t> seq =
        text ? base::parse_uint(base::trim(*text)) : Result<std::uint64_t>(text.error());
    return seq ? std::min(*seq, last) : last;
  }

  engine::Notifier::Hooks notifier_hooks() {
    engine::Notifier::Hooks hooks;
    hooks.events = [this](std::uint64_t after, std::size_t limit) {
      return engine_.events(after, limit);
    };
    hooks.find = [this](core::JobId id) { return engine_.state().find(id); };
    hooks.deliver = [this](const engine::Delivery& delivery, engine::Notifier::Done done) {
      courier_.deliver(delivery, std::move(done));
    };
    // If saving fails, some notifications are sent twice after a restart.
    hooks.save = [this](std::uint64_t seq) {
      (void)base::write_atomic(told_path(), std::to_string(seq) + "\n");
    };
    hooks.log = log_line;
    return hooks;
  }

  // The system daemon never exits when idle.
  std::optional<std::uint64_t> idle_end_s() const {
    const std::uint64_t seconds = options_.config.idle_s.value;
    return options_.system || seconds == 0 ? std::nullopt : std::optional(seconds);
  }

  std::string simulation_folder() const {
    const std::string folder = base::variable("METE_SIM_DIR");
    return folder.empty() ? options_.state_dir : folder;
  }

  std::string readings_path() const { return base::join_path(options_.state_dir, "readings"); }

  EyesSettings eyes_settings() const {
    EyesSettings settings;
    settings.helper.open =
        node::open_nvml(simulated_.empty() ? "libnvidia-ml.so.1"
                                           : base::join_path(parts_.simgpu, "libnvidia-ml.so.1"));
    settings.helper.readings = readings_path();
    const char* costs = simulated_.empty() ? "context-cost" : "context-cost-sim";
    settings.cost_files.push_back(base::join_path(options_.state_dir, costs));
    if (Result<std::string> users = launch::state_dir())
      settings.cost_files.push_back(base::join_path(*users, costs));
    settings.parking = !parts_.mover.empty();
    settings.may_stop = in_first_namespace();
    settings.config = options_.config;
    return settings;
  }

  HandsSettings hands_settings() const {
    return {options_.state_dir,
            options_.system,
            options_.config,
            parts_,
            readings_path(),
            simulated_,
            [this] { return door_.path(); },
            options_.descriptors};
  }

  engine::Options engine_options() const {
    const config::Config& config = options_.config;
    engine::Options options;
    options.policy = config.policy.value;
    options.rules.half_life_s = config.half_life_s.value;
    options.rules.starve_after_s = config.starve_after_s.value;
    options.rules.retry_pause_s = config.retry_pause_s.value;
    options.rules.grace_s = config.grace_s.value;
    options.rules.park_min_run_s = config.park_min_run_s.value;
    options.rules.ended_kept = config.history_jobs.value;
    options.rules.user_bytes = config.user_bytes.value.count();
    options.rules.idle_warn_s = config.idle_warn_s.value;
    options.rules.idle_notify_s = config.idle_notify_s.value;
    options.rules.idle_park_s = config.park_idle_s.value;
    options.rules.idle_stop_s = config.idle_stop_s.value;
    const auto online = static_cast<std::uint32_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
    const std::uint64_t cpus = config.cpus.value.value_or(online);
    if (cpus != 0) options.rules.cpus = static_cast<std::uint32_t>(cpus);
    // An administrator may grant more processors than there are.
    options.rules.machine_cpus = std::max(online, static_cast<std::uint32_t>(cpus));
    const auto pages = static_cast<std::uint64_t>(std::max(0L, sysconf(_SC_PHYS_PAGES)));
    const auto page = static_cast<std::uint64_t>(std::max(0L, sysconf(_SC_PAGESIZE)));
    if (pages != 0 && page != 0) options.rules.machine_ram = Bytes::from_bytes(pages * page);
    if (Result<std::string> boot = node::read_boot_id()) options.boot_id = *std::move(boot);
    return options;
  }

  std::optional<std::uint32_t> admin_gid() const {
    const std::string& name = options_.config.admin_group.value;
    if (name.empty()) return std::nullopt;
    if (const group* entry = getgrnam(name.c_str()); entry != nullptr) return entry->gr_gid;
    log_line("there is no group " + base::quote(name) + ": daemon.admin_group has no effect");
    return std::nullopt;
  }

  // The driver reports pids of the first pid namespace. A daemon in another one (a container) may
  // mistake one process for another: it must not end any for that.
  bool in_first_namespace() const {
    constexpr std::uint64_t kFirst = 0xEFFFFFFC;  // PROC_PID_INIT_INO
    const Result<std::uint64_t> ours = node::read_pid_namespace(getpid());
    return !simulated_.empty() || (ours && *ours == kFirst);
  }

  // ---- every second ----

  // Whether the store is still the file that we opened. If it was removed or replaced, new records
  // would be lost, though acknowledged.
  bool store_is_in_place() {
    const auto now = base::file_id(base::join_path(options_.state_dir, "meted.db"));
    if (!store_file_) store_file_ = now;
    return now && store_file_ == now;
  }

  void keep_listening() {
    if (stopping_ || !door_.mend()) return;
    if (const Result<void> r = server_->listen_on(door_.take_socket()); !r)
      log_line("cannot listen: " + in_one_line(r.error()));
  }

  void tick() {
    if (!store_is_in_place()) {
      fail(Error::io("the state in " + options_.state_dir + " was removed or replaced"));
      return;
    }
    keep_listening();
    eyes_.tick();
    sweep_files_.write(engine_.state().sweeps());
    if (!options_.system && !stopping_ && program_.replaced()) {
      log_line("the program was replaced; continuing as the new one");
      successor_ = program_.path();
      stop();
    }
    if (!idle_end_s()) return;
    const bool idle =
        service_.idle() && server_->connections() == 0 && notifier_.counts().waiting == 0;
    idle_s_ = idle ? idle_s_ + 1 : 0;
    if (idle_s_ >= *idle_end_s()) stop();
  }

  // ---- the end ----

  void hear_signals() {
    sigset_t set;
    sigemptyset(&set);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, number);
    (void)sigprocmask(SIG_BLOCK, &set, nullptr);
    (void)signal(SIGPIPE, SIG_IGN);
    signals_.reset(signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
    Result<net::Watch> watch = loop_.watch(signals_.get(), net::kReadable, [this](net::Ready) {
      signalfd_siginfo info{};
      while (read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
        if (info.ssi_signo != SIGHUP)
          stop();
        else
          (void)reload();  // the log says what came of it
    });
    if (watch) signal_watch_ = *std::move(watch);
  }

  // Sends the last answers first.
  void stop() {
    if (std::exchange(stopping_, true)) return;
    metrics_.reset();
    server_->drain([this] { loop_.stop(); });
    end_timer_ = loop_.after(seam::Milliseconds(1'000), [this] { loop_.stop(); });
  }

  void fail(const Error& error) {
    log_line("cannot go on: " + in_one_line(error));
    exit_code_ = base::kExitFailed;
    loop_.stop();
  }

  DaemonOptions options_;
  FrontDoor& door_;
  net::Loop loop_;
  seam::Clock& clock_ = seam::system_clock();
  std::unique_ptr<store::SqliteStore> store_;
  launch::Parts parts_;
  std::string simulated_;
  seam::Loop seam_;
  ClaimsKeeper claims_;
  Hands hands_;
  engine::Engine engine_;
  serve::Service service_;
  BackupJob backup_;
  Courier courier_;
  SweepFiles sweep_files_;
  engine::Notifier notifier_;
  Eyes eyes_;
  std::optional<net::HttpServer> server_;
  std::optional<net::HttpServer> metrics_;  // over TCP
  std::string metrics_trouble_;
  net::Timer metrics_timer_;
  std::string config_trouble_;              // of the last reload
  std::vector<std::string> needs_restart_;  // keys, since the last reload
  std::optional<base::FileId> store_file_;
  ProgramWatch program_{base::real_path("/proc/self/exe")};
  std::string successor_;
  Fd signals_;
  net::Watch signal_watch_;
  net::Timer ticker_;
  net::Timer end_timer_;
  std::uint64_t idle_s_ = 0;
  int exit_code_ = 0;
  bool stopping_ = false;
};

DaemonEnd failed(const Error& error, net::ReadyPipe& ready) {
  log_line("cannot start: " + in_one_line(error));
  ready.notify_failed(error);
  return {base::kExitFailed};
}

}  // namespace

DaemonEnd run_daemon(const DaemonOptions& asked, net::ReadyPipe ready) {
  DaemonOptions options = asked;
  Result<Descriptors> descriptors = raise_descriptors();
  if (!descriptors) return failed(descriptors.error(), ready);
  options.descriptors = *descriptors;
  Result<net::Listener> listener =
      net::claim_place({options.socket, options.system, net::Milliseconds(2'000)});
  if (!listener) return failed(listener.error(), ready);
  Result<launch::Parts> parts = launch::find_parts();
  if (!parts) return failed(parts.error(), ready);
  Result<std::unique_ptr<store::SqliteStore>> store = store::SqliteStore::open(options.state_dir);
  if (!store) return failed(store.error(), ready);
  // The state is ours now: clients wait in the socket's queue during the rest of the start.
  if (Result<void> r = listener->open_door(); !r) return failed(r.error(), ready);
  // Runs of every user read the cards' readings in this folder (0644) instead of each asking the
  // driver. Everything else in it stays closed to them (0600).
  struct stat folder {};
  if (options.system && stat(options.state_dir.c_str(), &folder) == 0)
    (void)chmod(options.state_dir.c_str(), (folder.st_mode & 07777) | 0011);
  FrontDoor door(*std::move(listener), options.state_dir, options.system, log_line);
  const std::string pid_file = base::join_path(options.state_dir, "meted.pid");
  const std::string pid = std::to_string(getpid()) + "\n";
  (void)base::write_atomic(pid_file, pid);
  std::optional<Daemon> daemon;
  try {  // Asio's reactor throws when it gets no descriptor
    daemon.emplace(options, *std::move(store), *std::move(parts), door);
  } catch (const std::exception& error) {
    return failed(Error::busy("the loop cannot be made").with_evidence(error.what()), ready);
  }
  if (Result<void> r = daemon->recover(); !r) return failed(r.error(), ready);
  if (Result<void> r = daemon->serve(); !r) return failed(r.error(), ready);
  ready.notify_ready();
  const int code = daemon->run();
  // The state may have been removed, and may belong to the next daemon now.
  if (const Result<std::string> last = base::read_all(pid_file, 64); last && *last == pid)
    (void)unlink(pid_file.c_str());
  return {code, daemon->successor(), options.descriptors.before};
}

}  // namespace mete::daemon
