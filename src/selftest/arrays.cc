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
  array("cuArrayCreate_v2", kFlat, [](CUarray* out) {
    const CUDA_ARRAY_DESCRIPTOR shape{1024, 1024, CU_AD_FORMAT_FLOAT, 4};
    return CU(cuArrayCreate_v2)(out, &shape);
  });
  array("cuArray3DCreate_v2", kDeep, [](CUarray* out) {
    const CUDA_ARRAY3D_DESCRIPTOR shape{256, 256, 64, CU_AD_FORMAT_FLOAT, 4, 0};
    return CU(cuArray3DCreate_v2)(out, &shape);
  });
  destroy();
  mipmap();
}

}  // namespace mete::selftest
