// SPDX-License-Identifier: Apache-2.0
// Service files: YAML in, services out, each with the words of the job that its replicas are. Keys
// are those of core/service/spec.h, with Cortex's names under autoscaling:, and those of a job
// file. Only the text is read. docs/formats/service-file.md has every key.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "cli/job_file.h"
#include "core/service/spec.h"

namespace mete::cli {

struct FileService {
  core::service::ServiceSpec spec;
  FileJob job;
};

struct ServiceFile {
  std::vector<FileService> services;
  // For mete simulate: what there is for services on a card, and how much of it is copied in a
  // second.
  std::optional<Bytes> room;
  std::optional<Bytes> swap_rate;
};

// `path` is for the places in errors: "chat.yaml:3:5: ...". At least one service, each name once,
// each model of one service only.
Result<ServiceFile> parse_service_file(std::string_view text, const std::string& path);

}  // namespace mete::cli
