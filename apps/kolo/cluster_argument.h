// How commands name a cluster and its hosts.
#pragma once

#include "cli/option_set.h"
#include "cluster/cluster.h"
#include "cluster/cluster_file.h"
#include "names.h"

namespace kolo::app {

inline constexpr cli::OptionText kClusterArgument{
    "CLUSTER",
    "",
    "The name of the cluster, or the file that describes it.",
    {.names = cluster_names, .is_optional = true}};
inline constexpr cli::OptionText kClusterNeeded{
    "CLUSTER",
    "",
    "The name of the cluster, or the file that describes it.",
    {.names = cluster_names}};

/// A name, a file, or "" for the only cluster there is. Throws not_found, invalid_argument.
inline std::string cluster_named(const std::string& given) {
  if (given.ends_with(".yaml") || given.ends_with(".yml"))
    return cluster::name_in_cluster_file(given);
  return cluster::cluster_name_or_only(given);
}

}  // namespace kolo::app
