# SPDX-License-Identifier: Apache-2.0
mete_fuzz(accepted USES engine support content_hash)
