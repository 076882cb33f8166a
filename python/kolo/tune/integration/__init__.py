"""Other frameworks in trials, at Ray Tune's places for them."""
