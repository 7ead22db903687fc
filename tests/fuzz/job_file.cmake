# SPDX-License-Identifier: Apache-2.0
mete_fuzz(job_file USES cli)
