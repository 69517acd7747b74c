// `transept devices`: where a model could run on this machine.

#include "Command.h"

#include "runtime/CpuFeatures.h"
#include "runtime/ThreadTeam.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

namespace transept::tool {

namespace {

using json = nlohmann::ordered_json;

constexpr const char *footer = R"(Examples:
  transept devices
  transept devices --json
  transept translate model.tsp --device vulkan:0 < in.txt)";

/// Levels of instruction sets that this processor runs, best first.
std::vector<std::string> runningLevels() {
  const std::vector<std::string> features = cpuFeatures();
  std::vector<std::string> levels;
  for (const std::string &level : cpuLevels()) {
    const std::vector<std::string> needed = levelFeatures(level);
    if (std::all_of(needed.begin(), needed.end(), [&](const std::string &feature) {
          return std::find(features.begin(), features.end(), feature) != features.end();
        }))
      levels.push_back(level);
  }
  return levels;
}

json describe(const VulkanDeviceInfo &info, size_t index) {
  json out = {{"device", "vulkan:" + std::to_string(index)}, {"name", info.name},     {"type", info.type},
              {"api", vulkanVersionText(info.apiVersion)},   {"driver", info.driver}, {"usable", info.problem.empty()}};
  if (!info.problem.empty())
    out["problem"] = info.problem;
  out["device_memory_bytes"] = info.localBytes;
  out["limits"] = {{"allocation_bytes", info.maxAllocation},
                   {"workgroups", info.maxGroups},
                   {"workgroup_size", info.maxGroupSize},
                   {"shared_memory_bytes", info.maxSharedBytes},
                   {"subgroup_size", info.subgroupSize}};
  out["matrices"] = json::array();
  for (const MatrixSize &size : info.matrices)
    out["matrices"].push_back(std::to_string(size.rows) + "x" + std::to_string(size.columns) + "x" +
                              std::to_string(size.depth));
  out["features"] = info.features;
  std::vector<std::string> used;
  for (const std::string &feature : variantFeatures())
    if (std::find(info.features.begin(), info.features.end(), feature) != info.features.end())
      used.push_back(feature);
  out["shaders_use"] = used;
  out["workgroup"] = usualWorkgroup(info);
  return out;
}

std::string words(const json &list) {
  std::string out;
  for (const json &item : list)
    out += (out.empty() ? "" : " ") + printable(item.get<std::string>());
  return out;
}

void print(const json &devices) {
  for (const json &device : devices["devices"]) {
    std::printf("%s: %s\n", device["device"].get<std::string>().c_str(),
                printable(device["name"].get<std::string>()).c_str());
    if (device.contains("levels")) {
      std::printf("  levels %s; %d threads\n", words(device["levels"]).c_str(), device["threads"].get<int>());
      continue;
    }
    std::printf("  %s, Vulkan %s, driver %s\n", device["type"].get<std::string>().c_str(),
                device["api"].get<std::string>().c_str(), printable(device["driver"].get<std::string>()).c_str());
    if (device.contains("problem"))
      std::printf("  cannot be used: %s\n", printable(device["problem"].get<std::string>()).c_str());
    std::printf("  %.1f GiB of device memory\n", device["device_memory_bytes"].get<double>() / (1 << 30));
    std::printf("  limits:");
    for (const auto &[name, value] : device["limits"].items())
      std::printf(" %s %s", name.c_str(), value.dump().c_str());
    if (!device["matrices"].empty())
      std::printf("\n  matrices of 8-bit integers: %s", words(device["matrices"]).c_str());
    std::printf("\n  features: %s\n", words(device["features"]).c_str());
    const std::string used = words(device["shaders_use"]);
    std::printf("  shaders use: %s; workgroups of %s\n",
                used.empty() ? "nothing beyond what every device has" : used.c_str(),
                device["workgroup"].dump().c_str());
  }
  if (devices.contains("vulkan_problem"))
    std::printf("vulkan: none; %s\n", printable(devices["vulkan_problem"].get<std::string>(), 400).c_str());
}

Status listDevices(bool asJson) {
  json out = {{"devices", json::array()}};
  out["devices"].push_back({{"device", "cpu"},
                            {"name", "this processor"},
                            {"usable", true},
                            {"levels", runningLevels()},
                            {"threads", availableThreads()}});
  Result<std::vector<VulkanDeviceInfo>> found = listVulkanDevices();
  for (size_t i = 0; found.ok() && i < found->size(); ++i)
    out["devices"].push_back(describe((*found)[i], i));
  if (!found.ok())
    out["vulkan_problem"] = found.status().message();
  else if (found->empty())
    out["vulkan_problem"] = "the installed drivers find no device";
  if (asJson)
    std::printf("%s\n", out.dump(2, ' ', false, json::error_handler_t::replace).c_str());
  else
    print(out);
  return {};
}

} // namespace

void registerDevices(CLI::App &app, Command &command) {
  auto asJson = std::make_shared<bool>(false);
  CLI::App *sub = app.add_subcommand("devices", "List where a model can run on this machine");
  sub->footer(footer);
  sub->add_flag("--json", *asJson, "Print JSON");
  sub->callback([asJson, &command] { command.action = [asJson] { return listDevices(*asJson); }; });
}

} // namespace transept::tool
