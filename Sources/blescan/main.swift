print("blescan")
