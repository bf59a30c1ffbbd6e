def measure(): return {}
