"""What elastic programs of the tests have in common: how they get another rank."""


def wait_for_another_rank(hvd, state, hosts_file):
    """Lists another host, and leaves by an exception when its rank has come."""
    if hvd.rank() == 0:
        with open(hosts_file, "a") as file:
            file.write("127.0.0.1:1\n")
    while True:
        state.check_host_updates()
