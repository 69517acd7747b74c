#include "TwiceModel.h"

#include "TinyModel.h"

namespace transept::tests {

std::vector<ArtifactSection> twiceSections() {
  program::Manifest manifest;
  manifest.add_kernels()->set_name("twice");
  program::Entry *entry = manifest.add_entries();
  entry->set_name("main");
  program::Symbol *symbol = entry->add_symbols();
  symbol->set_name("n");
  for (bool output : {false, true}) {
    program::Buffer *buffer = entry->add_buffers();
    buffer->set_name(output ? "y" : "x");
    buffer->set_storage(output ? program::OUTPUT : program::INPUT);
    buffer->set_dtype(program::F32);
    *buffer->add_dims() = postfix("n", {"n"});
  }
  program::Segment *segment = entry->add_segments();
  segment->set_dispatches(1);
  segment->set_next(1);
  program::Dispatch *dispatch = entry->add_dispatches();
  *dispatch->mutable_items() = postfix("n", {"n"});
  dispatch->add_buffers(0);
  dispatch->add_buffers(1);
  program::CodeObject *code = manifest.add_code();
  code->set_target("cpu");
  code->set_level("x86-64");
  code->set_section("code/x86-64");
  return {ArtifactSection::fromBytes("manifest", SectionKind::Manifest, manifest.SerializeAsString()),
          ArtifactSection::fromBytes("code/x86-64", SectionKind::Code, readFile(TRANSEPT_TEST_KERNELS))};
}

} // namespace transept::tests
