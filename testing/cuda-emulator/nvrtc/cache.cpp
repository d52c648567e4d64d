#include "cache.h"
#include "files.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sys/stat.h>
#include <unistd.h>

namespace emulated {

std::string cache_file(const std::string &library_folder, const std::string &key) {
  const char *named = getenv("EMULATED_CUDA_CACHE");
  std::string folder = named && *named ? named : library_folder + "/cache";
  if (folder == "0") return "";
  mkdir(folder.c_str(), 0700);
  unsigned __int128 hash = ((unsigned __int128)0x6c62272e07bb0142 << 64) | 0x62b821756295c58d; // FNV-1a
  const unsigned __int128 prime = ((unsigned __int128)1 << 88) | 0x13b;
  for (unsigned char c : key) hash = (hash ^ c) * prime;
  char name[40];
  snprintf(name, sizeof name, "/%016llx%016llx", (unsigned long long)(hash >> 64), (unsigned long long)hash);
  return folder + name;
}

bool cache_read(const std::string &file, std::string *image) { return !file.empty() && read_file(file, image); }

void cache_write(const std::string &file, const std::string &image) {
  if (file.empty()) return;
  // Others may read meanwhile: the file appears whole.
  static std::atomic<unsigned> written{0};
  std::string part = file + "." + std::to_string(getpid()) + "." + std::to_string(written++);
  if (!write_file(part, image) || rename(part.c_str(), file.c_str())) unlink(part.c_str());
}

} // namespace emulated
