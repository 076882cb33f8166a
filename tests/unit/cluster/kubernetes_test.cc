// The template for Kubernetes has only fields that exist, each of the right type. What its API
// knows is written down here as far as the template may use it; nothing is asked of a server.
#include <gtest/gtest.h>

#include "base/files.h"
#include "base/json.h"
#include "base/yaml.h"
#include "cluster/cluster_file.h"

namespace kolo::cluster {
namespace {

/// A type by its name; a map with known fields ("!" = needed); a list of one kind; a map of any
/// names ("*").
const Json& job_schema() {
  static const Json schema = parse_json(R"({
    "!apiVersion": "=batch/v1", "!kind": "=Job",
    "!metadata": {"!name": "name", "namespace": "name", "labels": {"*": "text"},
                  "annotations": {"*": "text"}},
    "!spec": {
      "completionMode": "=Indexed", "!completions": "number", "!parallelism": "number",
      "backoffLimit": "number", "activeDeadlineSeconds": "number",
      "ttlSecondsAfterFinished": "number", "suspend": "boolean",
      "!template": {
        "metadata": {"labels": {"*": "text"}, "annotations": {"*": "text"}},
        "!spec": {
          "!restartPolicy": "=Never", "terminationGracePeriodSeconds": "number",
          "subdomain": "name", "nodeSelector": {"*": "text"}, "serviceAccountName": "name",
          "!containers": [{
            "!name": "name", "!image": "text", "command": ["text"], "args": ["text"],
            "workingDir": "text", "imagePullPolicy": "text",
            "env": [{"!name": "text", "value": "text"}],
            "resources": {"requests": {"*": "quantity"}, "limits": {"*": "quantity"}},
            "volumeMounts": [{"!name": "name", "!mountPath": "text", "readOnly": "boolean"}]
          }],
          "volumes": [{"!name": "name", "emptyDir": {"medium": "text", "sizeLimit": "quantity"},
                       "persistentVolumeClaim": {"!claimName": "name", "readOnly": "boolean"}}]
        }
      }
    }
  })",
                                        "the schema");
  return schema;
}

bool is_name(const std::string& text) {
  return !text.empty() && text.size() <= 63 &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-.") == std::string::npos;
}

/// What is wrong with `value` at `where`; "" = nothing.
std::string fault_of(const Json& value, const Json& schema, const std::string& where) {
  if (schema.is_string()) {
    const auto type = schema.get<std::string>();
    const bool fits = type == "number"                           ? value.is_number_integer()
                      : type == "boolean"                        ? value.is_boolean()
                      : !value.is_string() && type != "quantity" ? false
                      : type == "quantity" ? value.is_string() || value.is_number()
                      : type == "name"     ? is_name(value.get<std::string>())
                      : type[0] == '='     ? value == type.substr(1)
                                           : true;
    return fits ? "" : where + " is not " + type;
  }
  if (schema.is_array()) {
    if (!value.is_array()) return where + " is no list";
    for (const auto& item : value)
      if (auto fault = fault_of(item, schema[0], where + "[]"); !fault.empty()) return fault;
    return "";
  }
  if (!value.is_object()) return where + " is no map";
  for (const auto& [key, item] : value.items()) {
    const auto found = schema.contains("*")         ? schema.find("*")
                       : schema.contains("!" + key) ? schema.find("!" + key)
                                                    : schema.find(key);
    if (found == schema.end()) return where + "." + key + " is unknown";
    if (auto fault = fault_of(item, *found, where + "." + key); !fault.empty()) return fault;
  }
  for (const auto& [key, item] : schema.items())
    if (key[0] == '!' && !value.contains(key.substr(1))) return where + key + " is missing";
  return "";
}

Json template_with(const std::string& replaced, const std::string& by) {
  std::string text = read_file(KOLO_SHARE "/kubernetes/job.yaml");
  const auto replace = [&text](const std::string& from, const std::string& to) {
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
      text.replace(at, from.size(), to);
  };
  replace("CLUSTER", "lab");
  replace("PODS", "4");
  if (!replaced.empty()) replace(replaced, by);
  return parse_yaml(text, "job.yaml");
}

TEST(KubernetesTest, TheTemplateHasOnlyFieldsThatExist) {
  const Json job = template_with("", "");
  EXPECT_EQ(fault_of(job, job_schema(), "job"), "");
  EXPECT_EQ(job.at("spec").at("completions"), job.at("spec").at("parallelism"));
}

TEST(KubernetesTest, ATypoOrAWrongTypeIsFound) {
  EXPECT_EQ(fault_of(template_with("parallelism", "paralelism"), job_schema(), "job"),
            "job.spec.paralelism is unknown");
  EXPECT_EQ(fault_of(template_with("completions: 4", "completions: four"), job_schema(), "job"),
            "job.spec.completions is not number");
  EXPECT_EQ(
      fault_of(template_with("restartPolicy: Never", "restartPolicy: Always"), job_schema(), "job"),
      "job.spec.template.spec.restartPolicy is not =Never");
}

TEST(KubernetesTest, TheClusterFileCanBeRead) {
  const ClusterFile file = load_cluster_file(KOLO_SHARE "/kubernetes/cluster.yaml");
  ASSERT_TRUE(file.machines);
  EXPECT_EQ(file.machines->create, "./create");
  EXPECT_EQ(file.ssh.shell, "kubectl exec -i {host} -- sh -c");
}

}  // namespace
}  // namespace kolo::cluster
