# Reads names of C++ files from standard input and checks the #include lines in them:
#   - a module (src/NAME) sees itself and modules below it; two modules on one level do not see each other;
#   - public headers and examples see public headers only;
#   - third-party headers stay where the fence below puts them.
# Tests and benches may look anywhere.

BEGIN {
  level["base"] = 0
  level["comm"] = level["events"] = level["exec"] = 1
  level["engine"] = level["search"] = level["store"] = level["launch"] = 2
  level["train"] = level["jobs"] = level["cluster"] = 3
  level["tune"] = 4
  level["hps"] = level["dashboard"] = 5
  level["nas"] = 6
  level["apps"] = level["python"] = 7

  # header prefix -> the only folders that may name it
  fence["<gloo/"] = "^bench/"
  fence["<mpi.h>"] = "^plugins/"
  fence["<hwloc"] = "^src/exec/"
  fence["<spdlog/"] = "^src/base/"
  fence["<yaml-cpp/"] = "^src/base/"
  fence["<sodium"] = "^src/(base|comm/rendezvous)/"
  fence["<Eigen/"] = "^src/(search|nas)/"
  fence["<torch/"] = "^(src/(train|nas)/|include/kolo/(torch|nas)(\\.h$|/)|examples/)"
  fence["<ATen/"] = fence["<c10/"] = fence["<torch/"]
  fence["<pybind11/"] = "^python/"
  fence["<zlib.h>"] = "^src/train/"
  fence["\"event.pb.h"] = fence["<google/protobuf/"] = "^src/events/"
  fence["<sqlite3.h>"] = "^src/store/"
  fence["<httplib.h>"] = "^src/dashboard/"
  fence["<libpq-fe.h>"] = "^src/store/"
}

function complain(file, line, text) {
  printf "%s:%d: %s\n", file, line, text
  bad = 1
}

function check(file, line, header, name, parts, module, other, prefix) {
  name = substr(header, 2, length(header) - 2)
  split(file, parts, "/")
  module = parts[1] == "src" ? parts[2] : parts[1]
  if (module == "plugins") module = "comm"
  if (module == "tests" || module == "bench") return

  for (prefix in fence)
    if (index(header, prefix) == 1 && file !~ fence[prefix])
      complain(file, line, header ": only files matching " fence[prefix] " may include it")

  if (module == "include" || module == "examples") {
    if (header ~ /^"/ && name ~ /\// && name !~ /^kolo\//)
      complain(file, line, header ": " module " sees public headers (kolo/…) only")
    if (module == "include" && header ~ /^</ && name ~ /[\/.]/ && name !~ /^torch\//)
      complain(file, line, header ": public headers include the standard library and kolo/… only")
    return
  }
  if (!(module in level)) {
    complain(file, line, "unknown module '" module "'; add it to scripts/layers.awk and docs/architecture.md")
    return
  }
  if (header !~ /^"/) return
  split(name, parts, "/")
  other = parts[1]
  if (other == "kolo") {
    if (module == "base" && name !~ /^kolo\/(error|random|version)\.h$/)
      complain(file, line, header ": base stands below the rest of the public interface")
  } else if (other in level && other != module && level[other] >= level[module]) {
    complain(file, line, header ": " module " stands below or beside " other)
  }
}

{
  file = $0
  number = 0
  while ((getline text < file) > 0) {
    ++number
    if (match(text, /^[ \t]*#[ \t]*include[ \t]*["<][^">]+[">]/)) {
      sub(/^[ \t]*#[ \t]*include[ \t]*/, "", text)
      match(text, /^["<][^">]+[">]/)
      check(file, number, substr(text, RSTART, RLENGTH))
    }
  }
  close(file)
}

END { exit bad }
