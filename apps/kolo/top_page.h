// What `kolo top` shows: studies, the trials that run, runs, jobs and hosts.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cluster/host_watch.h"
#include "dashboard/study_index.h"

namespace kolo::app {

/// A title and a table; the first row names the columns.
struct TopSection {
  std::string title;
  std::vector<std::vector<std::string>> rows{};
};

/// Looks again and again: what has been read of a study is kept, and links to hosts stay open.
class TopReader {
 public:
  /// `storage` as in --storage.
  explicit TopReader(std::string storage);

  /// From the database of studies, the active one of jobs, the runs of this user and the hosts of
  /// their clusters. What is not there is left out; a database that does not answer is a section
  /// that says so. Of a large study no more is read at once than takes so long.
  std::vector<TopSection> sections(std::chrono::milliseconds patience);

 private:
  void follow(store::StudyStore& store, std::chrono::milliseconds patience);
  TopSection studies_section(store::StudyStore& store) const;
  TopSection trials_section(store::StudyStore& store) const;
  void add_hosts(std::vector<TopSection>& sections);

  const std::string storage_;
  std::map<store::StudyId, dashboard::StudyIndex> studies_;
  std::unique_ptr<cluster::HostWatch> hosts_;  // once there is a cluster
};

/// At most `height` lines of at most `width` letters. Every section gets its title and the names of
/// its columns; the lines that are left are shared out, and "… N more" stands for the rest.
std::vector<std::string> top_page(const std::vector<TopSection>& sections, std::size_t width,
                                  std::size_t height);

}  // namespace kolo::app
