// Writes what a model counted, if it was built with coverage; else it does nothing.
#pragma once

#include "verilated.h"

#if VM_COVERAGE

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <vector>

#include "verilated_cov.h"

// Belongs to a model: to be destroyed before it, since the counts are in there. What is left when the process ends is
// written then. The files go to the folder that DAEDAL_COVERAGE names, as `MODEL-process-number.dat`.
class Coverage {
 public:
  explicit Coverage(VerilatedContext &context) : context_(&context) { living().all.push_back(context_); }
  Coverage(const Coverage &) = delete;
  ~Coverage() {
    auto &all = living().all;
    all.erase(std::remove(all.begin(), all.end(), context_), all.end());
    write(context_);
  }

 private:
  struct Living {
    std::vector<VerilatedContext *> all;
    ~Living() {
      for (VerilatedContext *context : all) write(context);
    }
  };

  static Living &living() {
    static Living contexts;
    return contexts;
  }

  static void write(VerilatedContext *context) {
    static unsigned number = 0;
    const char *folder = std::getenv("DAEDAL_COVERAGE");
    if (!folder) return;
    const std::string name = DAEDAL_MODEL "-" + std::to_string(getpid()) + "-" + std::to_string(number++) + ".dat";
    context->coveragep()->write(std::string(folder) + "/" + name);
  }

  VerilatedContext *context_;
};

#else

class Coverage {
 public:
  explicit Coverage(VerilatedContext &) {}
};

#endif
