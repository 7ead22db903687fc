// SPDX-License-Identifier: Apache-2.0
// Arrays and mipmaps: charged by their true size, which only the driver knows; at least the texels.
#include "selftest/driver.h"
#include "selftest/groups.h"
#include "selftest/ledger.h"
#include "selftest/rows.h"

namespace mete::selftest {

namespace {

const Ledger& books() { return Ledger::of_this_job(); }

// 1024² or 256²×64 texels of 16 bytes.
constexpr std::uint64_t kFlat = 16 * kMiB;
constexpr std::uint64_t kDeep = 64 * kMiB;

template <class Create>
void array(const char* entry, std::uint64_t texels, Create create) {
  CUarray made = nullptr;
  const std::uint64_t before = books().charged();
  Check check(kCharged, entry);
  if (!check.did(create(&made))) return;
  check.between(std::to_string(texels) + " bytes of texels, charged", books().charged() - before,
                texels, texels + texels / 2);
  (void)CU(cuArrayDestroy)(made);
}

// Where a driver offers an old interface no longer, the meter still stands before it: 16 GiB of
// texels are past the cap, and refused before the driver is asked.
template <class Create>
void refused_past_the_cap(const char* entry, Create create) {
  Check check(kOver, entry);
  CUarray made = nullptr;
  if (books().limit() > 15 * (kMiB << 10)) return check.skip("the cap is larger than any array");
  const std::uint64_t before = books().refusals();
  const CUresult result = create(&made);
  if (result == CUDA_ERROR_NOT_FOUND) return check.skip("this driver does not have it");
  check.that(result == CUDA_ERROR_OUT_OF_MEMORY, "16 GiB asked, answers " + describe(result));
  check.equal("refusals counted", books().refusals() - before, 1);
  if (result == CUDA_SUCCESS) (void)CU(cuArrayDestroy)(made);
}

void destroy() {
  Check check(kBack, "cuArrayDestroy");
  const CUDA_ARRAY_DESCRIPTOR shape{1024, 1024, CU_AD_FORMAT_FLOAT, 4};
  CUarray made = nullptr;
  const std::uint64_t before = books().charged();
  if (!check.did(CU(cuArrayCreate_v2)(&made, &shape), "cuArrayCreate_v2")) return;
  if (check.did(CU(cuArrayDestroy)(made)))
    check.equal("charged after the end", books().charged() - before, 0);
}

void mipmap() {
  const CUDA_ARRAY3D_DESCRIPTOR shape{1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, 0};
  CUmipmappedArray made = nullptr;
  const std::uint64_t before = books().charged();
  {
    Check check(kCharged, "cuMipmappedArrayCreate");
    if (!check.did(CU(cuMipmappedArrayCreate)(&made, &shape, 11))) return;
    check.between("11 levels from 1024 x 1024, charged", books().charged() - before, kFlat,
                  2 * kFlat);
  }
  Check check(kBack, "cuMipmappedArrayDestroy");
  if (check.did(CU(cuMipmappedArrayDestroy)(made)))
    check.equal("charged after the end", books().charged() - before, 0);
}

}  // namespace

void check_arrays(const Task&) {
  (void)start();
  array("cuArrayCreate", kFlat, [](CUarray* out) {
    const CUDA_ARRAY_DESCRIPTOR_v1 shape{1024, 1024, CU_AD_FORMAT_FLOAT, 4};
    return CU(cuArrayCreate)(out, &shape);
  });
  array("cuArrayCreate_v2", kFlat, [](CUarray* out) {
    const CUDA_ARRAY_DESCRIPTOR shape{1024, 1024, CU_AD_FORMAT_FLOAT, 4};
    return CU(cuArrayCreate_v2)(out, &shape);
  });
  array("cuArray3DCreate", kDeep, [](CUarray* out) {
    const CUDA_ARRAY3D_DESCRIPTOR_v1 shape{256, 256, 64, CU_AD_FORMAT_FLOAT, 4, 0};
    return CU(cuArray3DCreate)(out, &shape);
  });
  array("cuArray3DCreate_v2", kDeep, [](CUarray* out) {
    const CUDA_ARRAY3D_DESCRIPTOR shape{256, 256, 64, CU_AD_FORMAT_FLOAT, 4, 0};
    return CU(cuArray3DCreate_v2)(out, &shape);
  });
  refused_past_the_cap("cuArrayCreate", [](CUarray* out) {
    const CUDA_ARRAY_DESCRIPTOR_v1 shape{32768, 32768, CU_AD_FORMAT_FLOAT, 4};
    return CU(cuArrayCreate)(out, &shape);
  });
  refused_past_the_cap("cuArray3DCreate", [](CUarray* out) {
    const CUDA_ARRAY3D_DESCRIPTOR_v1 shape{1024, 1024, 1024, CU_AD_FORMAT_FLOAT, 4, 0};
    return CU(cuArray3DCreate)(out, &shape);
  });
  destroy();
  mipmap();
}

}  // namespace mete::selftest
