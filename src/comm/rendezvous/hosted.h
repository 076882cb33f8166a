// Rendezvous without kolo's launcher: rank 0 hosts the server, and a private file says where it is.
//
// The file is $KOLO_RENDEZVOUS_DIR/<job> (default ~/.kolo/rendezvous), in a directory and with a
// mode that only this user can read, on a file system that all hosts of the job see. Rank 0 writes
// it, the others wait for it, and it is removed as soon as all have come. Its name holds the job's
// own id, and a file whose server does not answer is waited past, so that one left behind by an
// earlier job harms nobody. Rank 0's server lives as long as its process.
#pragma once

#include <memory>
#include <string>

#include "comm/bootstrap.h"
#include "comm/launchers.h"

namespace kolo::comm::rendezvous {

/// Throws failed_precondition if `launched` has no job name that tells it from others.
std::shared_ptr<Bootstrap> make_hosted_bootstrap(const Launched& launched, Deadline deadline);

}  // namespace kolo::comm::rendezvous
