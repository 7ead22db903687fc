// SPDX-License-Identifier: Apache-2.0
// `mete kernel install|ls|rm`: kernels for Jupyter that run inside a share of a card. `mete kernel
// exec` is what such a kernel's kernel.json starts: `mete run` of ipykernel, with a companion that
// tells the notebook what it waits for.
#include <unistd.h>

#include <algorithm>
#include <array>
#include <vector>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "cli/job_words.h"
#include "cli/json.h"
#include "cli/kernel_companion.h"
#include "cli/kernel_files.h"
#include "cli/run.h"
#include "cli/shipped.h"
#include "cli/subword.h"
#include "cli/table.h"
#include "cli/verbs.h"
#include "cli/wait_signals.h"
#include "core/request/gpu.h"
#include "node/child.h"
#include "runner/daemon_client.h"
#include "seam/clock.h"

namespace mete::cli {

namespace {

constexpr int kExitNoSuchKernel = 66;

constexpr std::array kKernelOptions{
    kGpuOption,
    kDevicesOption,
    kGpuTypeOption,
    kWhereOption,
    OptionSpec{
        "--idle", "TIME",
        "park the kernel after TIME without work on its cards, and bring it back at its next "
        "GPU call (default: 10m); never turns this off"},
    kTimeOption,
    kCpusOption,
    kRamOption,
    kPriorityOption,
    kPreemptibleOption,
    OptionSpec{
        "--name", "NAME",
        "name of the kernel in Jupyter's menu (default: from --gpu, such as Python (8 GiB))"},
    OptionSpec{"--python", "PATH", "the Python that runs the cells (default: python3 in PATH)"},
    OptionSpec{"--user", "", "install for you alone, in Jupyter's data folder (default)"},
    OptionSpec{.name = "--prefix",
               .value = "FOLDER",
               .help =
                   "install in FOLDER/share/jupyter; without =FOLDER in the environment of that "
                   "Python, as jupyter kernelspec install --sys-prefix does",
               .value_optional = true},
    OptionSpec{"--replace", "", "replace a kernel of mete that has this name"},
    kOutputOption,
};

// Options of ours; all others are those of `mete run`.
bool is_ours(std::string_view option) {
  constexpr std::array<std::string_view, 6> kOurs{"--name",   "--python",  "--user",
                                                  "--prefix", "--replace", "--output"};
  return std::find(kOurs.begin(), kOurs.end(), option) != kOurs.end();
}

std::vector<std::string> run_words(const Parsed& parsed) {
  std::vector<std::string> words;
  for (const auto& [option, value] : parsed.options) {
    if (is_ours(option)) continue;
    words.emplace_back(option);
    if (!value.empty()) words.push_back(value);
  }
  return words;
}

Result<RunPlan> plan_of(std::vector<std::string> words, const std::vector<std::string>& command) {
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  const Result<Parsed> parsed = parse_options(run_options(), words, Rest::kCommand);
  if (!parsed) return parsed.error();
  return make_run_plan(*parsed);
}

// ---- install ------------------------------------------------------------------------------------

struct Python {
  std::string path;    // absolute; of a virtual environment the link in it
  std::string prefix;  // its environment
};

std::string in_path(const std::string& program) {
  if (program.find('/') != std::string::npos) return program;
  const std::string folders = base::variable("PATH");
  for (const std::string_view folder : base::split(folders, ':')) {
    std::string path = base::join_path(folder.empty() ? "." : folder, program);
    if (access(path.c_str(), X_OK) == 0) return path;
  }
  return "";
}

Result<Python> look_at_python(const std::string& asked) {
  const std::string program = in_path(asked);
  if (program.empty())
    return Error::io("there is no " + base::quote(asked) + " in PATH")
        .with_hint("say which Python: --python /usr/bin/python3");
  node::ChildRequest request;
  request.program = program;
  // Apart, so that the error names what is missing.
  request.arguments = {"-c",
                       "import sys\n"
                       "print(sys.executable)\nprint(sys.prefix)\n"
                       "import ipykernel.kernelapp, jupyter_client, zmq"};
  request.environment = base::own_environment();
  request.timeout = seam::Milliseconds(60'000);
  Result<node::ChildAnswer> answer = node::run_child(request, seam::system_clock());
  if (!answer) {
    Error error = std::move(answer).error().within("run " + base::quote(program));
    if (error.code == ErrorCode::kNotFound) error.code = ErrorCode::kIo;  // 66 is for jobs
    return error;
  }
  const std::vector<std::string_view> lines = base::split(answer->output, '\n');
  if (lines.size() < 3 || !lines[0].starts_with('/'))
    return Error::invalid(base::quote(program) + " is no Python")
        .with_evidence("exit code " + std::to_string(answer->exit_code))
        .with_hint("say which Python: --python /usr/bin/python3");
  Python python{std::string(lines[0]), std::string(lines[1])};
  if (answer->exit_code != 0) {
    const std::vector<std::string_view> errors = base::split(base::trim(answer->errors), '\n');
    return Error::io("ipykernel is missing in " + base::quote(python.path))
        .with_evidence(base::printable(errors.back()))
        .with_hint(python.path + " -m pip install ipykernel, or apt install python3-ipykernel");
  }
  return python;
}

// "Python (8 GiB)"; the same request has the same name.
std::string display_name(const core::Request& request) {
  if (!request.gpu) return "Python (GPU " + base::join(request.devices, ",") + ")";
  if (*request.gpu == core::no_gpu()) return "Python (no GPU)";
  const std::string text = to_string(*request.gpu);
  if (request.gpu->cards.kind == core::CardCount::Kind::kOne)
    if (const auto* size = std::get_if<core::Size>(&request.gpu->memory))
      return "Python (" + to_string(size->bytes) + ")";
  return "Python (GPU " + text + ")";
}

std::string own_path() { return base::real_path("/proc/self/exe"); }

Result<std::string> folder_of(const Parsed& parsed, const Python& python) {
  const std::string* prefix = parsed.find("--prefix");
  if (prefix != nullptr && parsed.has("--user"))
    return Error::invalid("--user and --prefix contradict each other")
        .with_hint("leave one of the two out");
  if (prefix == nullptr) return kernels_of_user();
  return kernels_of_prefix(prefix->empty() ? python.prefix : *prefix);
}

std::string kernel_json(const KernelFile& kernel) {
  JsonObject json;
  json.text("name", kernel.name).text("display_name", kernel.spec.display_name);
  if (!kernel.spec.mete->gpu.empty()) json.text("gpu", kernel.spec.mete->gpu);
  if (!kernel.spec.mete->idle.empty()) json.text("idle", kernel.spec.mete->idle);
  return json.text("python", kernel.spec.mete->python).text("folder", kernel.folder).str();
}

std::string document_of(const std::vector<KernelFile>& kernels) {
  std::vector<std::string> list;
  for (const KernelFile& kernel : kernels) list.push_back(kernel_json(kernel));
  return JsonObject()
      .text("schema", "mete.kernels/1")
      .text("at", timestamp())
      .raw("kernels", json_array(list))
      .str();
}

int install_kernel(const Parsed& parsed, const Output& output) {
  if (const Result<void> r = no_more_than(1, parsed.rest); !r) return output.fail(r.error());
  std::vector<std::string> words = run_words(parsed);
  const std::string* asked = parsed.find("--python");
  const std::string* gpu = parsed.find("--gpu");
  Result<RunPlan> plan = plan_of(words, {"python3"});
  if (!plan) return output.fail(plan.error());
  const core::Request& request = plan->job.spec.request;
  const std::string* idle = parsed.find("--idle");
  std::string idle_text = idle == nullptr ? "" : *idle;
  if (idle == nullptr && request.gpu != core::no_gpu()) {
    idle_text = "10m";
    words.insert(words.end(), {"--idle", idle_text});
  }
  const std::string* name = parsed.find("--name");
  wire::KernelSpec spec;
  spec.display_name = name == nullptr ? display_name(request) : *name;
  const std::string slug = kernel_name(spec.display_name);
  if (slug.empty())
    return output.fail(Error::invalid("--name " + base::quote(spec.display_name) +
                                      " has no letter or digit that a kernel's name may have")
                           .with_hint("--name \"Python (8 GiB)\""));
  const Result<Python> python = look_at_python(asked == nullptr ? "python3" : *asked);
  if (!python) return output.fail(python.error());
  const Result<std::string> folder = folder_of(parsed, *python);
  if (!folder) return output.fail(folder.error());
  spec.mete = wire::KernelSpec::Mete{gpu == nullptr ? "" : *gpu, idle_text, python->path};
  spec.argv = {own_path(), "kernel", "exec"};
  spec.argv.insert(spec.argv.end(), words.begin(), words.end());
  spec.argv.insert(spec.argv.end(),
                   {"--name", slug, "--python", python->path, "--", "{connection_file}"});
  const Result<std::string> path = write_kernel(*folder, slug, spec, parsed.has("--replace"));
  if (!path) return output.fail(path.error());
  if (output.json())
    output.data(document_of({{slug, base::parent_path(*path), spec}}));
  else
    output.data(base::printable("kernel " + slug + " (" + spec.display_name + "): " + *path));
  return kExitOk;
}

// ---- ls and rm ----------------------------------------------------------------------------------

std::vector<KernelFile> kernels_here(const Parsed& parsed) {
  const std::string* prefix = parsed.find("--prefix");
  return find_kernels(kernel_folders(prefix == nullptr ? "" : *prefix));
}

int list_kernels(const Parsed& parsed, const Output& output) {
  if (const Result<void> r = no_more_than(1, parsed.rest); !r) return output.fail(r.error());
  const std::vector<KernelFile> kernels = kernels_here(parsed);
  if (output.json()) {
    output.data(document_of(kernels));
    return kExitOk;
  }
  if (kernels.empty()) {
    output.say("there is no kernel of mete; mete kernel install --gpu 8G makes one");
    return kExitOk;
  }
  Table table({{"NAME"}, {"IN JUPYTER"}, {"GPU"}, {"IDLE"}, {"PYTHON"}, {"FOLDER"}});
  for (const KernelFile& kernel : kernels)
    table.add({kernel.name, kernel.spec.display_name, kernel.spec.mete->gpu, kernel.spec.mete->idle,
               kernel.spec.mete->python, kernel.folder});
  output.data(table.text(stdout_width()));
  return kExitOk;
}

int remove_kernels(const Parsed& parsed, const Output& output) {
  if (parsed.rest.size() < 2)
    return output.fail(Error::invalid("which kernel is not said").with_hint("mete kernel ls"));
  const std::vector<KernelFile> kernels = kernels_here(parsed);
  std::vector<KernelFile> chosen;
  for (std::size_t i = 1; i < parsed.rest.size(); ++i) {
    const auto found = std::find_if(kernels.begin(), kernels.end(), [&](const KernelFile& kernel) {
      return kernel.name == parsed.rest[i] || kernel.spec.display_name == parsed.rest[i];
    });
    if (found == kernels.end())
      return output.fail(Error::not_found("there is no kernel of mete with the name " +
                                          base::quote(parsed.rest[i]))
                             .with_hint("mete kernel ls lists them"),
                         kExitNoSuchKernel);
    chosen.push_back(*found);
  }
  for (const KernelFile& kernel : chosen)
    if (const Result<void> r = remove_kernel(kernel); !r) return output.fail(r.error());
  if (output.json()) output.data(document_of(chosen));
  return kExitOk;
}

// ---- exec ---------------------------------------------------------------------------------------

int exec_kernel(const Parsed& parsed, const Output& output) {
  const std::string* python = parsed.find("--python");
  if (parsed.rest.size() < 2 || python == nullptr)
    return output.fail(Error::invalid("mete kernel exec is for Jupyter")
                           .with_hint("mete kernel install --gpu 8G makes a kernel"));
  const Result<std::string> script = shipped_path("jupyter/mete_kernel.py");
  if (!script) return output.fail(script.error());
  KernelCompanion companion({*python, *script, parsed.rest[1]}, output);
  std::vector<std::string> words = run_words(parsed);
  if (const std::string* name = parsed.find("--name"); name != nullptr)
    words.insert(words.end(), {"--name", *name});
  std::vector<std::string> command{*python, *script, "run"};
  command.insert(command.end(), parsed.rest.begin() + 1, parsed.rest.end());
  Result<RunPlan> plan = plan_of(words, command);
  if (!plan) {
    const int code = output.fail(plan.error());
    WaitSignals signals;
    companion.begin(signals.descriptor());
    companion.failed(plan.error());
    return code;
  }
  if (companion.kernel_end() >= 0)
    plan->job.extra_environment.emplace_back("METE_KERNEL_FD",
                                             std::to_string(companion.kernel_end()));
  return run_to_the_end(*std::move(plan), output, &companion);
}

int run_kernel(const Parsed& parsed, const Output& output) {
  if (!parsed.rest.empty() && parsed.rest.front() == "exec") return exec_kernel(parsed, output);
  const Result<std::string> word = sub_word("kernel", parsed.rest, {"install", "ls", "rm"});
  if (!word) return output.fail(word.error());
  if (*word == "install") return install_kernel(parsed, output);
  for (const auto& [option, value] : parsed.options)
    if (option != "--prefix" && option != "--output")
      return output.fail(Error::invalid(std::string(option) + " is for mete kernel install"));
  return *word == "ls" ? list_kernels(parsed, output) : remove_kernels(parsed, output);
}

}  // namespace

const Verb kKernelVerb{
    "kernel",
    "kernels for Jupyter notebooks that run inside a share of a card",
    "mete kernel install --gpu SHARE [--idle TIME|never] [options]\n"
    "mete kernel ls | rm NAME...",
    "mete kernel install --gpu 8G           # \"Python (8 GiB)\" in Jupyter's menu\n"
    "mete kernel install --gpu 0.4 --idle never --name \"Python (big)\"\n"
    "mete kernel install --gpu 8G --python ~/venv/bin/python --prefix\n"
    "mete kernel ls\n"
    "mete kernel rm python-8-gib",
    "install writes a kernel.json that starts ipykernel as mete run would. Each notebook that uses "
    "the kernel is a job: it waits for its share, never holds more, and gives it back when the "
    "kernel is shut down or restarted. A cell that is run while the kernel waits shows what it "
    "waits for, and runs when the kernel has its share.\n"
    "\n"
    "A kernel that has done nothing on its cards for the time of --idle is parked: its GPU memory "
    "moves to host memory, and other jobs can use the card. Its variables stay. The next cell that "
    "uses the GPU brings it back. Cells that do not use the GPU run as always.\n"
    "\n"
    "ls lists the kernels that mete made, rm removes them. exec is what kernel.json starts.",
    kKernelOptions,
    Rest::kWords,
    run_kernel,
    {"install", "ls", "rm"},
};

}  // namespace mete::cli
