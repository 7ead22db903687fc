// SPDX-License-Identifier: Apache-2.0
// See dry_run.h.
#include "cli/dry_run.h"

#include "cli/explain_text.h"
#include "cli/table.h"
#include "wire/explain.h"

namespace mete::cli {

int print_dry_run(runner::DaemonClient& client, const std::string& request,
                  const std::string& label, const Output& output) {
  const Result<std::string> body = client.call("POST", "/v1/try", request);
  const Result<wire::DryRunDocument> document = body ? wire::decode_dry_run(*body) : body.error();
  if (!document) return output.fail(document.error());
  output.data(output.json() ? *body : wrapped(label + dry_run_text(*document), stdout_width()));
  return kExitOk;
}

}  // namespace mete::cli
