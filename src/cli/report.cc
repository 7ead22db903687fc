// SPDX-License-Identifier: Apache-2.0
// `mete report`: a bundle for a bug report, without what belongs to people (redact.h). Asks the
// daemon if one runs and starts none; writes one file and sends nothing.
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/archive.h"
#include "cli/doctor.h"
#include "cli/json.h"
#include "cli/redact.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "config/config.h"
#include "runner/daemon_client.h"
#include "seam/clock.h"
#include "wire/cards.h"

namespace mete::cli {

namespace {

using wire::Json;

constexpr std::array kReportOptions{
    OptionSpec{"--file", "FILE", "write the report here (default: mete-report-TIME.tar.gz)"},
    OptionSpec{"--list", "", "print what the report would contain, and write nothing"},
    kOutputOption,
};
constexpr std::size_t kMostBytes = 256 << 10;  // of one file in it
constexpr std::size_t kMostEvents = 500;
constexpr std::size_t kMostJobs = 200;

struct Item {
  std::string name;
  std::string what;  // one line
  std::string content;
};

// The end of a long text, from the beginning of a line.
std::string tail(std::string text) {
  if (text.size() <= kMostBytes) return text;
  text.erase(0, text.size() - kMostBytes);
  return text.substr(text.find('\n') + 1);
}

std::string tail_of(const std::string& path) {
  Result<Fd> file = base::open_fd(path, O_RDONLY | O_NONBLOCK);
  struct stat info {};
  if (!file || fstat(file->get(), &info) != 0 || !S_ISREG(info.st_mode)) return "";
  const off_t from = std::max<off_t>(0, info.st_size - static_cast<off_t>(2 * kMostBytes));
  if (lseek(file->get(), from, SEEK_SET) < 0) return "";
  std::string text(2 * kMostBytes, '\0');
  const ssize_t got = read(file->get(), text.data(), text.size());
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return tail(std::move(text));
}

std::string output_of(const char* command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command, "r"), pclose);
  std::string text;
  std::array<char, 4096> part;
  while (pipe && text.size() < 4 * kMostBytes) {
    const std::size_t got = fread(part.data(), 1, part.size(), pipe.get());
    if (got == 0) break;
    text.append(part.data(), got);
  }
  return tail(std::move(text));
}

class Report {
 public:
  std::vector<Item> make() {
    learn_surroundings();
    ask_daemon();
    for (const Json* document : {&jobs_, &cards_, &daemon_}) redactor_.learn(*document);
    for (const Json& event : events_) redactor_.learn(event);
    std::vector<Item> items;
    items.push_back({"version.txt", "version of mete and of its daemon", versions()});
    items.push_back(
        {"machine.txt", "kernel, distribution, driver, memory, environment", machine()});
    items.push_back({"doctor.txt", "what mete doctor says", redactor_.text(doctor_text())});
    items.push_back({"config.txt", "the configuration", configuration()});
    items.push_back({"daemon.json", "what mete daemon status says", printed(daemon_)});
    items.push_back({"cards.json", "what mete cards says", printed(cards_)});
    items.push_back({"jobs.json", "the last " + std::to_string(kMostJobs) + " jobs", jobs()});
    items.push_back(
        {"events.jsonl", "the last " + std::to_string(kMostEvents) + " events", events()});
    items.push_back({"meted.log", "the end of the daemon's log", redactor_.text(daemon_log())});
    items.push_back({"mover.log", "the end of the movers' log",
                     redactor_.text(tail_of(base::join_path(state_dir_, "mover.log")))});
    items.insert(items.begin(), {"README.txt", "what is in here", readme(items)});
    return items;
  }

 private:
  // Whose machine this is.
  void learn_surroundings() {
    redactor_.learn("host", base::host_name());
    redactor_.learn("host", base::short_host_name());
    if (const passwd* user = getpwuid(geteuid()); user != nullptr) {
      redactor_.learn("path", user->pw_dir);
      if (geteuid() != 0) redactor_.learn("user", user->pw_name);
    }
    for (const char* name : {"USER", "LOGNAME", "SUDO_USER"})
      if (const std::string user = base::variable(name); user != "root")
        redactor_.learn("user", user);
    redactor_.learn("path", base::home_folder());
    // A token in the environment may be in a command, a label or a message too.
    constexpr std::size_t kLeast = 8;
    for (const std::string& entry : base::own_environment()) {
      const std::string value = entry.substr(std::min(entry.find('=') + 1, entry.size()));
      if (value.size() >= kLeast && !entry.starts_with("METE_SIM=") && !entry.starts_with("PATH="))
        redactor_.learn("value", value);
    }
  }

  void ask_daemon() {
    if (const Result<runner::DaemonPlace> place = runner::daemon_place())
      state_dir_ = place->state_dir;
    Result<runner::DaemonClient> client =
        runner::DaemonClient::open(runner::DaemonClient::Start::kNever);
    if (!client) {
      trouble_ = client.error().message;
      return;
    }
    const auto get = [&](const std::string& target) {
      const Result<std::string> body = client->call("GET", target);
      if (!body) return Json();
      Result<Json> json = wire::parse_json(*body);
      return json ? *std::move(json) : Json();
    };
    daemon_ = get("/v1/daemon");
    daemon_version_ = get("/v1/version");
    cards_ = get("/v1/cards");
    // The model of a card is no secret; the names of jobs, below it, are.
    if (cards_.contains("cards"))
      for (Json& card : cards_["cards"])
        if (card.contains("name")) {
          card["model"] = card["name"];
          card.erase("name");
        }
    jobs_ = get("/v1/jobs?all=1");
    const Json page = get("/v1/events?last=" + std::to_string(kMostEvents));
    if (page.contains("events"))
      for (const Json& event : page["events"]) events_.push_back(event);
    if (daemon_.contains("state_dir") && daemon_["state_dir"].is_string())
      state_dir_ = daemon_["state_dir"].get<std::string>();
    if (jobs_.contains("jobs") && jobs_["jobs"].size() > kMostJobs) {
      Json& list = jobs_["jobs"];
      list.erase(list.begin(), list.end() - static_cast<std::ptrdiff_t>(kMostJobs));
    }
  }

  std::string printed(const Json& document) {
    if (document.is_null()) return "no daemon answers: " + redactor_.text(trouble_) + "\n";
    return redactor_.document(document).dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  std::string jobs() { return printed(jobs_); }

  std::string events() {
    if (daemon_.is_null()) return printed(daemon_);
    std::string text;
    for (const Json& event : events_) text += wire::write_json(redactor_.document(event)) + "\n";
    return tail(std::move(text));
  }

  std::string versions() const {
    std::string text = "mete " METE_VERSION "\n";
    text += daemon_version_.is_null() ? "no daemon answers\n"
                                      : "daemon " + wire::write_json(daemon_version_) + "\n";
    return text;
  }

  std::string machine() {
    std::string text;
    utsname name{};
    if (uname(&name) == 0)
      text += "kernel       " + std::string(name.sysname) + " " + name.release + " " +
              name.machine + "\n";
    if (const Result<std::string> release = base::read_all("/etc/os-release", 64 << 10))
      for (const std::string_view line : base::split(*release, '\n'))
        if (line.starts_with("PRETTY_NAME=")) text += "distribution " + std::string(line) + "\n";
    text += "glibc        " + std::string(gnu_get_libc_version()) + "\n";
    text += "CPUs         " + std::to_string(sysconf(_SC_NPROCESSORS_ONLN)) + "\n";
    text += "memory       " +
            to_string(Bytes::from_bytes(static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) *
                                        static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE)))) +
            "\n";
    const Result<std::string> driver = base::read_all("/proc/driver/nvidia/version", 64 << 10);
    text += "driver       " + (driver ? redactor_.text(*driver) : "no NVIDIA driver is loaded\n");
    if (!text.ends_with('\n')) text += '\n';
    struct statfs disk {};
    if (statfs(state_dir_.c_str(), &disk) == 0) {
      char kind[32];
      (void)std::snprintf(kind, sizeof kind, "0x%lx", static_cast<unsigned long>(disk.f_type));
      text +=
          "state        file system " + std::string(kind) + ", " +
          to_string(Bytes::from_bytes(disk.f_bavail * static_cast<std::uint64_t>(disk.f_bsize))) +
          " free\n";
    }
    text += "root         " + std::string(geteuid() == 0 ? "yes" : "no") + "\n";
    for (const char* variable :
         {"METE_CONFIG", "METE_SOCKET", "METE_STATE_DIR", "METE_SIM", "METE_SIM_DIR",
          "METE_CLAIMS_DIR", "XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME",
          "CUDA_VISIBLE_DEVICES", "LD_PRELOAD", "LD_LIBRARY_PATH"})
      if (const std::string value = base::variable(variable); !value.empty())
        text += "environment  " + std::string(variable) + "=" + redactor_.text(value) + "\n";
    return text;
  }

  // A value that is a text may be a name, a path or an address with a token.
  std::string configuration() {
    const config::ConfigPlaces places = config::ConfigPlaces::from_environment(true);
    const Result<config::Config> values = config::load_config(places);
    if (!values)
      return redactor_.text(values.error().message + "\n" + values.error().evidence) + "\n";
    constexpr std::array<std::string_view, 5> kPrivate{"admin_group", "spill", "listen", "to",
                                                       "sendmail"};
    std::string text;
    for (const config::Shown& shown : config::show(*values)) {
      const bool is_private =
          std::find(kPrivate.begin(), kPrivate.end(), shown.key) != kPrivate.end() &&
          !shown.origin.file.empty();
      text += std::string(shown.section) + "." + std::string(shown.key) + " = ";
      if (is_private)
        text += "(" + redactor_.word_for("setting", shown.value) + ")";
      else
        text += shown.key == "devices" ? redactor_.text(shown.value) : shown.value;
      text += "  # " + redactor_.text(to_string(shown.origin)) + "\n";
    }
    return text;
  }

  std::string daemon_log() const {
    const bool system = daemon_.contains("mode") && daemon_["mode"] == "system";
    if (system) return output_of("journalctl -u meted -n 1000 --no-pager -o cat 2>/dev/null");
    return tail_of(base::join_path(state_dir_, "meted.log"));
  }

  static std::string readme(const std::vector<Item>& items) {
    std::string text =
        "A report of `mete report`, for an issue about mete. Names of users, hosts, jobs and\n"
        "files, commands, labels, addresses and tokens are replaced by words like user-1 and\n"
        "path-2; the same thing has the same word in all files. Environments, scripts and the\n"
        "output of jobs are not in it. Read it before you give it to others.\n\n";
    for (const Item& item : items)
      text += item.name + std::string(14 - std::min<std::size_t>(13, item.name.size()), ' ') +
              item.what + "\n";
    return text;
  }

  Redactor redactor_;
  std::string state_dir_;
  std::string trouble_;
  Json daemon_, daemon_version_, cards_, jobs_;
  std::vector<Json> events_;
};

// "20261116T083000Z"
std::string stamp(WallTime now) {
  std::string text = to_string(now);
  text.resize(std::min<std::size_t>(text.size(), 19));
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text + "Z";
}

Result<void> write_new(const std::string& path, std::string_view bytes) {
  Result<Fd> file = base::open_fd(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  if (!file) return std::move(file).error();
  if (base::write_all(file->get(), bytes)) return {};
  const Error error = Error::from_errno("write " + path, errno);
  (void)unlink(path.c_str());
  return error;
}

std::string document(const std::vector<Item>& items, const std::string& path, std::size_t bytes) {
  std::vector<std::string> files;
  for (const Item& item : items)
    files.push_back(JsonObject()
                        .text("name", item.name)
                        .text("what", item.what)
                        .number("bytes", item.content.size())
                        .str());
  JsonObject json;
  json.text("schema", "mete.report/1").text("at", timestamp());
  if (!path.empty()) json.text("path", path).number("bytes", bytes);
  return json.raw("files", json_array(files)).str();
}

std::string table(const std::vector<Item>& items) {
  Table rows({{"FILE"}, {"SIZE"}, {"WHAT"}});
  for (const Item& item : items)
    rows.add({item.name, to_string(Bytes::from_bytes(item.content.size())), item.what});
  return rows.text(std::nullopt);
}

int run_report(const Parsed& parsed, const Output& output) {
  const std::vector<Item> items = Report().make();
  if (parsed.has("--list")) {
    if (parsed.has("--file"))
      return output.fail(Error::invalid("--list writes no file").with_hint("leave --file out"));
    output.data(output.json() ? document(items, "", 0) : table(items));
    return kExitOk;
  }
  const WallTime now = seam::system_clock().wall();
  const std::string folder = "mete-report-" + stamp(now);
  const std::string* said = parsed.find("--file");
  const std::string path = said == nullptr ? folder + ".tar.gz" : *said;
  std::vector<ArchiveFile> files;
  for (const Item& item : items) files.push_back({folder + "/" + item.name, item.content});
  const std::string bytes = tar_gz(files, now.ms / 1000);
  if (const Result<void> r = write_new(path, bytes); !r) return output.fail(r.error());
  if (output.json()) {
    output.data(document(items, path, bytes.size()));
    return kExitOk;
  }
  output.data(path);
  output.say(to_string(Bytes::from_bytes(bytes.size())) + " in " + std::to_string(items.size()) +
             " files; nothing was sent. Names, commands, paths and addresses are replaced.");
  output.say("read it before you attach it to an issue: tar -xzf " + path);
  return kExitOk;
}

}  // namespace

const Verb kReportVerb{
    "report",
    "write a redacted report for a bug report",
    "mete report [--file FILE] [--list] [-o json]",
    "mete report --list                 # what would be in it\n"
    "mete report                        # mete-report-TIME.tar.gz in this folder\n"
    "mete report --file bug.tar.gz",
    "Collects the version, the output of mete doctor, the configuration, facts about the machine, "
    "the last jobs and events and the end of the daemon's log into one file. Names of users, "
    "hosts, jobs and files, commands, labels, addresses and tokens are replaced by words such as "
    "user-1, the same word for the same thing. Environments, scripts and output of jobs are not "
    "included. Nothing is sent; the file is readable by you only.",
    kReportOptions,
    Rest::kNothing,
    run_report,
};

}  // namespace mete::cli
