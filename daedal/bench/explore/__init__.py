"""What embedding tables would do on hardware that need not be there: ``daedal explore``, on the target ``model``."""
